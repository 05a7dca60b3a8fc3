#!/usr/bin/env python3
"""usage: scripts/take_figures.py [TABLE...]

Makes docs/figures/CLASS/TABLE.json of what scripts/bench and scripts/run have left in build/bench,
of every table (scripts/write_figures.py has the list) that was measured there, and writes the
documents; scripts/draw_picture.py draws the pictures of "select" and "kept". Refuses what was
measured with uncommitted changes: no commit would say what it is of.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import core_model
import isa_figures
import write_figures
from write_figures import BY_NAME, ROOT, Fault, Result

sys.path.insert(0, str(ROOT / "benchmarks/suites"))
from results import NAMES
from table import time_text, times_text

BENCH = ROOT / "build/bench"
Cells = tuple[str, list[str], list[list[str]]]  # versions, head, rows
Rows = dict[str, dict[str, Any]]  # of one case, by implementation

# What README.md shows of scripts/run, by shapes and type.
SHOWN = {
    ("16x16x256x256 16x16x256x256 16x16x256x256", "f32"): "16x16x256x256, all the same shape",
    ("256x256 16x16x256x256 16x16x256x256", "f32"): "mask 256x256 onto 16x16x256x256",
    ("256x256 16x16x256x256 16x16x256x256", "f16"): "the same",
    ("1x1x1024x1024 1x12x1024x1024 - causal", "f32"): "causal mask 1x1x1024x1024 over 12 heads, "
    "a scalar",
    ("8x1x1x384 1 8x12x384x384 padding", "f32"): "padding mask 8x1x1x384 onto 8x12x384x384",
    ("64 64 64", "f32"): "64 elements",
    ("3x5 2x3x4x5 2x3x4x5", "f32"): "mask 3x5 onto 2x3x4x5 (not legal)",
}


KERNELS = ("avx512", "avx2", "sse4", "sve", "neon", "scalar")
WORDS = {"aborts": "ends the process", "-": "`invalid_shape`"}


def ms_text(cell: str) -> str:
    """A cell of scripts/run's: milliseconds, or a word."""
    return time_text(float(cell) / 1e3) if re.fullmatch(r"[\d.]+", cell) else WORDS.get(cell, cell)


def measured(path: Path) -> str:
    if not path.exists():
        raise Fault(f"{path}: not measured")
    return path.read_text()


def batch_cells(bench: Path, batch: str) -> tuple[str, list[list[str]]]:
    """The library, and of each case its name, type, times and how many times faster."""
    table, rows = json.loads(measured(bench / f"run-{batch}.json")), []
    for name, dtype, _, alone, own, faster, _ in table["rows"]:
        times = "" if faster == "-" else f"{float(faster):.3g} times"
        rows.append([name, dtype, ms_text(alone), ms_text(own), times])
    return table["library"].removesuffix(", Maskwise in front"), rows


def run_cells(bench: Path) -> Cells:
    library, rows = batch_cells(bench, "perf")
    found = {(name, dtype): times for name, dtype, *times in rows}
    if lacking := [key for key in SHOWN if key not in found]:
        raise Fault(f"run-perf.json: without {lacking[0]}")
    head = ["Select (cond, src_0, src_1)", "type", "oneDNN", "with Maskwise", "faster"]
    return library, head, [[name, key[1], *found[key]] for key, name in SHOWN.items()]


def merged_cells(bench: Path) -> Cells:
    library, rows = batch_cells(bench, "merge_perf")
    named = [(name.rsplit(" ", 1), times) for name, _, *times in rows]
    head = ["graph", "shape", "oneDNN alone", "merged", "faster"]
    return library, head, [[f"`{pattern}`", shape, *times] for (pattern, shape), times in named]


def all_rows(bench: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(measured(bench / "results.json"))
    return rows


def by_case(rows: Iterable[dict[str, Any]], suite: str) -> dict[str, Rows]:
    cases: dict[str, Rows] = {}
    for row in rows:
        if row["suite"] == suite:
            cases.setdefault(row["case"], {})[row["impl"]] = row
    if not cases:
        raise Fault(f"results.json: suite {suite} was not measured")
    return cases


def forms_of(of_case: Rows, name: str) -> list[dict[str, Any]]:
    """A form follows the name of its implementation."""
    return [row for impl, row in of_case.items() if f"{impl} ".startswith(f"{name} ")]


def fastest(of_case: Rows, name: str) -> float | None:
    """Seconds of the implementation's fastest form, or of that form."""
    return min((row["seconds_median"] for row in forms_of(of_case, name)), default=None)


def times_of(of_case: Rows) -> str:
    return times_text(*(of_case[impl]["seconds_median"] for impl in ("onednn", "maskwise")))


# What the suite attention keeps of a case that is no other implementation.
OWN = ("onednn", "maskwise", "limit", "before", "after", "rows at the limit")


def listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "-"


def attention_row(name: str, cases: dict[str, Rows]) -> list[str]:
    """A case is named `CASE on LANE` on lanes other than the newest."""
    of_case = cases[name]
    share = of_case["maskwise"]["limit_fraction"]
    parts = [of_case[part]["seconds_median"] for part in ("before", "after") if part in of_case]
    lanes = {other.removeprefix(f"{name} on "): there for other, there in cases.items()}
    peers = dict.fromkeys(impl.split(" ")[0] for impl in of_case if impl not in OWN)
    return [
        name,
        time_text(of_case["onednn"]["seconds_median"]),
        time_text(of_case["maskwise"]["seconds_median"]),
        times_of(of_case),
        f"{share:.2f}" if share else "-",
        time_text(sum(parts)) if parts else "-",
        listed(f"{lane}: {times_of(there)}" for lane, there in lanes.items() if lane not in cases),
        listed(f"{peer} {time_text(fastest(of_case, peer))}" for peer in peers),
    ]


def attention_cells(bench: Path) -> Cells:
    every = by_case(all_rows(bench), "attention").items()
    cases = {name: of_case for name, of_case in every if {"onednn", "maskwise"} <= of_case.keys()}
    newest = [name for name in cases if " on " not in name]
    versions = dict.fromkeys(
        row["version"].split(", Maskwise")[0]
        if impl in OWN
        else f"{impl.split(' ')[0]} {row['version']}"
        for name in newest
        for impl, row in cases[name].items()
    )
    head = ["case", "oneDNN alone", "with Maskwise", "times faster", "of its ceiling"]
    head += ["oneDNN's parts", "times faster on other lanes", "other implementations"]
    return ", ".join(versions), head, [attention_row(name, cases) for name in newest]


# The cases of README's table of attention, by their names in scripts/bench attention --peers.
PLAIN = {
    "causal 1x12x512": "causal, 512",
    "causal 1x12x1024": "causal, 1024",
    "causal 1x12x2048": "causal, 2048",
    "causal 1x12x4096": "causal, 4096",
    "padding 1x12x1024": "padding, a quarter masked, 1024",
    "block-sparse 1x12x1024": "1 of 8 tiles kept, 1024",
    "no mask 1x12x1024": "no mask, 1024",
}
PLAIN_HEAD = {
    "engine": "Maskwise",
    "torch attn_mask": "PyTorch, mask given",
    "torch is_causal": "PyTorch, `is_causal`",
    "openvino": "OpenVINO",
    "onnxruntime": "ONNX Runtime",
    "onednn": "oneDNN alone",
    "maskwise": "oneDNN with Maskwise",
}


def peer_versions(cases: Iterable[Rows]) -> str:
    named = {
        f"{impl.split(' ')[0]} {row['version']}"
        for of_case in cases
        for impl, row in of_case.items()
        if impl not in OWN and not impl.startswith("engine ")
    }
    return ", ".join(sorted(named))


def plain_cells(bench: Path) -> Cells:
    """Attention by everybody, with the gain over the fastest of the others."""
    every = by_case(all_rows(bench), "attention")
    cases = {text: every[f"plain {name} f32"] for name, text in PLAIN.items()}
    rows = []
    for text, of_case in cases.items():
        found = {name: fastest(of_case, name) for name in PLAIN_HEAD}
        if "torch no mask" in of_case:  # PyTorch without a mask has the one form
            found["torch attn_mask"] = fastest(of_case, "torch no mask")
        others = [found[name] for name in PLAIN_HEAD if name not in ("engine", "maskwise")]
        own = found["engine"]
        if own is None:
            raise Fault(f"results.json: {text} was not measured with --peers")
        rows.append(
            [text, *map(time_text, found.values()), f"{min(filter(None, others)) / own:.2g} times"]
        )
    head = ["mask, sequence", *PLAIN_HEAD.values(), "faster than the fastest other"]
    library = next(iter(cases.values()))["onednn"]["version"].split(", Maskwise")[0]
    return f"f32, 12 heads of depth 64; {library}, {peer_versions(cases.values())}", head, rows


def kept_cells(bench: Path) -> Cells:
    """Milliseconds by how much of the mask is kept."""
    found = {
        match[1]: of_case
        for name, of_case in by_case(all_rows(bench), "attention").items()
        if (match := re.match(r"plain kept (\d+) % 1x12x2048 f32$", name))
    }
    names = [name for name in PLAIN_HEAD if name not in ("torch is_causal", "onednn", "maskwise")]
    rows = []
    for percent, of_case in found.items():
        times = [fastest(of_case, name) for name in names]
        rows.append([percent, *(f"{1e3 * spent:.4g}" if spent else "-" for spent in times)])
    if not rows:
        raise Fault("results.json: no plain attention by kept tiles")
    head = ["kept %", *(PLAIN_HEAD[name].split(",")[0] for name in names)]
    return f"1x12x2048x64, f32; {peer_versions(found.values())}", head, rows


# Selects that move less are bound by the call.
SHOWN_FROM_BYTES = 1_000_000


def ratio_text(of_case: Rows, name: str) -> str:
    """Times the limit's time; of the fastest form where an implementation has several."""
    shares = [row["limit_fraction"] or 0.0 for row in forms_of(of_case, name)]
    return f"{1 / max(shares):.4g}" if any(shares) else "-"


def select_cells(bench: Path) -> Cells:
    """The Selects of programs, in f32 with their own masks: the first mask of each is that."""
    every = [row for row in all_rows(bench) if row["suite"] == "select"]
    masks = {row["case"]: row["mask"] for row in reversed(every)}
    shown = [row for row in every if row["dtype"] == "f32" and row["mask"] == masks[row["case"]]]
    cases = by_case((row for row in shown if row["bytes"] >= SHOWN_FROM_BYTES), "select")
    rows = []
    for name, of_case in cases.items():
        limit = of_case["limit"]
        operands = " ".join(limit[operand] for operand in ("cond", "src_0", "src_1"))
        cells = [name, operands, limit["mask"], f"{limit['bytes'] / 1e6:.4g}"]
        rows.append([*cells, *(ratio_text(of_case, impl) for impl in NAMES)])
    versions = dict.fromkeys(
        f"{NAMES[impl.split(' ')[0]]} {re.split('[:,]', row['version'])[0]}"
        for of_case in cases.values()
        for impl, row in of_case.items()
        if impl != "limit"
    )
    head = ["case", "cond src_0 src_1", "mask", "MB", *NAMES.values()]
    return ", ".join(versions), head, rows


def targets_cells(bench: Path) -> Cells:
    """The table of build/bench/report.md without what was not measured; its second line has the
    versions."""
    lines = [line for line in measured(bench / "report.md").splitlines() if line]
    table = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in cells] for cells in table]
    head[-1] = head[-1] or "verdict"
    return lines[1], head, [row for row in rows if row[-1] != "not measured"]


def kernels_cells(bench: Path) -> Cells:
    """GB/s by instruction set and size of all operands; a column for each width of elements."""
    rates: dict[tuple[int, int], dict[int, float]] = {}
    for entry in json.loads(measured(bench / "kernels.json"))["benchmarks"]:
        found = re.match(r"(\w+)/select_x(\d+)_uuu_plain/(\d+)", entry["name"])
        if found and entry["aggregate_name"] == "median":
            place = KERNELS.index(found[1]), int(found[3])
            rates.setdefault(place, {})[int(found[2])] = entry["bytes_per_second"] / 1e9
    widths = sorted({width for of_size in rates.values() for width in of_size})
    if not widths:
        raise Fault(f"{bench / 'kernels.json'}: no kernel was measured")
    rows = []
    for (isa, size), of_size in sorted(rates.items()):
        cells = [f"{of_size[width]:.0f} ({of_size[width] / of_size[32]:.2f})" for width in widths]
        rows.append([KERNELS[isa], f"{size >> 10} KB", *cells])
    return "one thread, random mask", ["kernels", "operands", *(f"{w} bits" for w in widths)], rows


def model_cells(bench: Path) -> Cells:
    """From the copies that the run of scripts/bench has measured last."""
    copies = json.loads(measured(bench / "machine.json"))["copies"]
    one, every = (copies[f"limit, {which}"] for which in ("one thread", "all threads"))
    threads = next(row["threads"] for row in all_rows(bench) if row["impl"] == "maskwise")
    machines = core_model.machines(one, every, threads)
    rows = []
    for size in core_model.MEBIBYTES:
        spent = [core_model.seconds(size << 20, machine, one) for machine in machines]
        rows.append([f"{size} MiB", *map(time_text, spent)])
    return core_model.assumptions(one), ["moved", *(machine.name for machine in machines)], rows


def kept_cells_of(bench: Path, suite: str) -> Cells:
    """Of a suite that leaves the table as it is shown."""
    found = json.loads(measured(bench / f"{suite}.json"))
    return found["versions"], found["head"], found["rows"]


CELLS: dict[str, Callable[[Path], Cells]] = {
    "run": run_cells,
    "kernels": kernels_cells,
    "select": select_cells,
    "targets": targets_cells,
    "isa": isa_figures.isa_table,
    "slowest": isa_figures.slowest_table,
    "model": model_cells,
    "attention": attention_cells,
    "plain": plain_cells,
    "kept": kept_cells,
    "merged": merged_cells,
}


def stamp_of(bench: Path, suites: tuple[str, ...]) -> dict[str, str]:
    """The suites' own, if they are of one commit and one machine."""
    stamps = [json.loads(measured(bench / f"{suite}.stamp.json")) for suite in suites]
    for suite, stamp in zip(suites, stamps, strict=True):
        if stamp["commit"].endswith("+"):
            raise Fault(f"{suite}: measured with uncommitted changes of {stamp['commit']}")
        for what in ("commit", "class"):
            if stamp[what] != stamps[0][what]:
                raise Fault(f"{suites[0]} and {suite}: {stamps[0][what]} and {stamp[what]}")
    commands = dict.fromkeys(stamp["command"] for stamp in stamps)
    return {**stamps[-1], "command": ", ".join(commands)}


def result_text(result: Result) -> str:
    """JSON with a line for each row."""
    head, _, _ = json.dumps(asdict(result), indent=1, ensure_ascii=False).partition(',\n "rows": [')
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in result.rows)
    return f'{head},\n "rows": [\n{rows}\n ]\n}}\n'


def take(name: str, bench: Path, root: Path) -> Path:
    stamp = stamp_of(bench, BY_NAME[name].suites)
    versions, head, rows = CELLS[name](bench) if name in CELLS else kept_cells_of(bench, name)
    described = {key: stamp[key] for key in ("command", "commit", "date", "machine")}
    result = Result(**described, versions=versions, head=head, rows=rows)
    path = root / "docs/figures" / stamp["class"] / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result_text(result))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(BY_NAME)}")
    names = parser.parse_args().tables
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"no table '{unknown[0]}'; there are {', '.join(BY_NAME)}")
    status = 0
    for name in names or BY_NAME:
        try:
            print(f"taken: {take(name, BENCH, ROOT).relative_to(ROOT)}")
        except Fault as fault:
            print(f"{name}: not taken: {fault}")
            status |= name in names
    return write_figures.write(ROOT, check=False) or status


if __name__ == "__main__":
    sys.exit(main())
