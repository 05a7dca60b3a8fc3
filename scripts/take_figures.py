#!/usr/bin/env python3
"""usage: scripts/take_figures.py [--field FILE] [TABLE...]

Writes docs/figures/CLASS/TABLE.json from the results of scripts/bench and scripts/run in
build/bench. Without arguments, writes every table of scripts/write_figures.py that has results.
Then writes the tables of the documents; scripts/draw_picture.py draws the pictures. Refuses results
that were measured with uncommitted changes, because no commit identifies their sources.

--field: reads the results that an archive of scripts/field_kit measured on another machine.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import write_figures
from write_figures import BY_NAME, ROOT, Fault, Result

sys.path.insert(0, str(ROOT / "benchmarks/suites"))
from table import Cells, time_text

BENCH = ROOT / "build/bench"

# The rows of scripts/run that README.md shows, with the rows' names in README.md.
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

KEPT_PEERS = ("SDPA", "FlexAttention")
WORDS = {"aborts": "ends the process", "-": "`invalid_shape`"}


def ms_text(cell: str) -> str:
    """Converts a cell of scripts/run's table: milliseconds or a word."""
    return time_text(float(cell) / 1e3) if re.fullmatch(r"[\d.]+", cell) else WORDS.get(cell, cell)


def measured(path: Path) -> str:
    if not path.exists():
        raise Fault(f"{path}: not measured")
    return path.read_text()


def run_cells(bench: Path) -> Cells:
    """Returns the type, both times and their ratio of each case of SHOWN."""
    table = json.loads(measured(bench / "run-perf.json"))
    rows = {}
    for name, dtype, _, alone, maskwise_ms, faster, _ in table["rows"]:
        times = "" if faster == "-" else f"{float(faster):.3g} times"
        rows[name, dtype] = [ms_text(alone), ms_text(maskwise_ms), times]
    if lacking := [key for key in SHOWN if key not in rows]:
        raise Fault(f"run-perf.json: without {lacking[0]}")
    library = table["library"].removesuffix(", Maskwise in front")
    head = ["Select (cond, src_0, src_1)", "type", "oneDNN", "with Maskwise", "faster"]
    return library, head, [[name, key[1], *rows[key]] for key, name in SHOWN.items()]


def kept_cells(bench: Path) -> Cells:
    """Returns milliseconds by the share of tiles that the mask keeps."""
    table = json.loads(measured(bench / "masks.json"))
    columns = [table["head"].index(name) for name in ("Maskwise, array", *KEPT_PEERS)]
    rows = [
        [row[0].partition(" ")[0], *(row[column] for column in columns)]
        for row in table["rows"]
        if row[0].endswith("% of the tiles")
    ]
    if not rows:
        raise Fault("masks.json: no row by the share of tiles")
    return f"1x12x2048x64, f32; {table['versions']}", ["kept %", "Maskwise", *KEPT_PEERS], rows


# Tables that are computed from other results.
CELLS: dict[str, Callable[[Path], Cells]] = {
    "run": run_cells,
    "kept": kept_cells,
}


def cells_of(name: str, bench: Path) -> Cells:
    if name in CELLS:
        return CELLS[name](bench)
    result = json.loads(measured(bench / f"{name}.json"))
    return result["versions"], result["head"], result["rows"]


def stamp_of(bench: Path, suite: str) -> dict[str, str]:
    stamp: dict[str, str] = json.loads(measured(bench / f"{suite}.stamp.json"))
    if stamp["commit"].endswith("+"):
        raise Fault(f"{suite}: measured with uncommitted changes of {stamp['commit']}")
    return stamp


def result_text(result: Result) -> str:
    """The result as JSON, with one line per row."""
    head, _, _ = json.dumps(asdict(result), indent=1, ensure_ascii=False).partition(',\n "rows": [')
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in result.rows)
    return f'{head},\n "rows": [\n{rows}\n ]\n}}\n'


def take(name: str, bench: Path, root: Path) -> Path:
    stamp = stamp_of(bench, BY_NAME[name].suite or name)
    versions, head, rows = cells_of(name, bench)
    described = {key: stamp[key] for key in ("command", "commit", "date", "machine")}
    result = Result(**described, versions=versions, head=head, rows=rows)
    path = root / "docs/figures" / stamp["class"] / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result_text(result))
    return path


def unpacked(field: Path) -> Path:
    """Returns a folder with the results of a field kit's JSON file."""
    folder = Path(tempfile.mkdtemp(prefix="maskwise-field-"))
    for name, table in json.loads(field.read_text())["tables"].items():
        (folder / Path(name).name).write_text(json.dumps(table))
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"tables to take: {', '.join(BY_NAME)}")
    parser.add_argument("--field", type=Path, help="the JSON file of a field kit")
    arguments = parser.parse_args()
    names, bench = arguments.tables, unpacked(arguments.field) if arguments.field else BENCH
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"no table '{unknown[0]}'; there are {', '.join(BY_NAME)}")
    status = 0
    for name in names or BY_NAME:
        try:
            print(f"taken: {take(name, bench, ROOT).relative_to(ROOT)}")
        except Fault as fault:
            print(f"{name}: not taken: {fault}")
            status |= name in names
    return write_figures.write(ROOT, check=False) or status


if __name__ == "__main__":
    sys.exit(main())
