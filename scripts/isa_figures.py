"""The tables of scripts/bench isa select sweep --limit: each instruction set against the numbers to
reach, and the cases that are slowest on one of them. scripts/take_figures.py keeps them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from write_figures import ISA_NAMES, ROOT, Fault

sys.path.insert(0, str(ROOT / "benchmarks/suites"))
from isa import ALLOWED, Compared
from measure import maskwise_version
from results import Row
from targets import Measured, Rows, beyond_l2, fractions, large_and_direct

# Of the limit.
WANTED = {
    "select": {"median": 0.9, "least": 0.5},
    "sweep": {"median": 0.85, "p5": 0.5, "least": 0.25},
}
SLOWEST = 10
DESCRIBED = ("suite", "case", "cond", "src_0", "src_1", "dtype", "mask", "bytes")

Table = tuple[str, list[str], list[list[str]]]  # versions, head, rows


def read(bench: Path) -> tuple[dict[str, Any], list[Compared]]:
    """Refuses what is not of every case: it would look better or worse than the engine is."""
    path = bench / "isa.json"
    kept = json.loads(path.read_text())
    asked = kept["asked"]
    if missing := [suite for suite in WANTED if suite not in asked["suites"]]:
        raise Fault(f"{path}: suite {missing[0]} was not measured")
    if asked["only"] or asked["every"] != 1:
        raise Fault(f"{path}: of some cases: --only '{asked['only']}' --every {asked['every']}")
    if not asked["limit"]:
        raise Fault(f"{path}: measured without --limit")
    return kept, [Compared(**found) for found in kept["cases"]]


def versions() -> str:
    return f"maskwise {maskwise_version()}, without oneDNN"


def case_name(found: Compared) -> str:
    return f"{found.suite} {found.case} {found.dtype} {found.mask}"


def rows_of(found: Compared, name: str) -> Rows:
    """The case by one instruction set, as the targets read it."""
    described = {key: getattr(found, key) for key in DESCRIBED}
    described |= {"seconds_median": found.seconds[name], "limit_fraction": found.fractions[name]}
    row = Row(**described, impl="maskwise")
    return {"maskwise": row, "limit": row}


def figures(measured: Measured) -> dict[str, float]:
    least = measured.values[0][0]
    return {"median": measured.median(), "p5": measured.tail(), "least": least}


def share_text(measured: Measured, names: Iterable[str]) -> str:
    if not measured.values:
        return "-"
    shares = ", ".join(f"{name} {figures(measured)[name]:.2f}" for name in names)
    return f"{shares} ({measured.values[0][1]}) of {len(measured.values)}"


def ratio_text(every: list[Compared], name: str, lesser: str) -> tuple[str, int]:
    """Also how many cases take longer than with the lesser set."""
    pair = f"{name} / {lesser}"
    ratios = sorted(found.ratios[pair] for found in every)
    worst = max(every, key=lambda found: found.ratios[pair])
    above = sum(ratio > ALLOWED for ratio in ratios)
    text = f"{ISA_NAMES[lesser]}: median {ratios[len(ratios) // 2]:.2f}, most {ratios[-1]:.2f} "
    return text + f"({case_name(worst)}), {above} above {ALLOWED}", above


def isa_row(every: list[Compared], name: str, lesser: str | None) -> list[str]:
    select, sweep = (
        [rows_of(found, name) for found in every if found.suite == suite] for suite in WANTED
    )
    shares = {"select": fractions(beyond_l2(select)), "sweep": fractions(sweep)}
    missed = [
        f"{suite} {figure}"
        for suite, measured in shares.items()
        for figure, wanted in WANTED[suite].items()
        if figures(measured)[figure] < wanted
    ]
    against, above = ratio_text(every, name, lesser) if lesser else ("-", 0)
    if above:
        missed.append(f"slower than {ISA_NAMES[lesser or name]}")
    return [
        share_text(shares["select"], WANTED["select"]),
        share_text(fractions(large_and_direct(select)), WANTED["select"]),
        share_text(shares["sweep"], WANTED["sweep"]),
        against,
        f"MISSED: {', '.join(missed)}" if missed else "holds",
    ]


def isa_table(bench: Path) -> Table:
    kept, every = read(bench)
    names, native = kept["sets"], kept["native"]
    select, sweep = (
        ", ".join(f"{name} {share:g}" for name, share in wanted.items())
        for wanted in WANTED.values()
    )
    head = [
        "kernels",
        f"select, beyond L2 ({select})",
        "select, large and contiguous or row-broadcast",
        f"sweep ({sweep})",
        f"times as long as with the next lesser set (at most {ALLOWED})",
        "verdict",
    ]
    rows = []
    for name, lesser in zip(names, [*names[1:], None], strict=True):
        how = "native" if name == native else f"emulated: `MASKWISE_MAX_ISA={name}`"
        rows.append([f"{ISA_NAMES[name]}, {how}", *isa_row(every, name, lesser)])
    return versions(), head, rows


def plan_text(plan: str) -> str:
    """The box of how large a nest, how each operand is read and dst written, and the kernel."""
    parts = dict(word.split("=", 1) for word in plan.split())
    operands = " ".join(parts[operand] for operand in ("cond", "src_0", "src_1", "dst"))
    return f"{parts['box']} of {parts['nest']}: {operands}, {parts['kernel']}"


def slowest_of(every: list[Compared], name: str) -> list[Compared]:
    return sorted(every, key=lambda found: found.fractions[name])[:SLOWEST]


def slowest_table(bench: Path) -> Table:
    """The slowest cases of each instruction set, by all of them."""
    kept, every = read(bench)
    names = kept["sets"]
    shown = {case_name(found): found for name in names for found in slowest_of(every, name)}
    cases = sorted(shown.values(), key=lambda found: min(found.fractions[name] for name in names))
    head = ["case", "cond, src_0, src_1", "MB", "plan", *(ISA_NAMES[name] for name in names)]
    rows = []
    for found in cases:
        operands = f"{found.cond}, {found.src_0}, {found.src_1}"
        shares = [f"{found.fractions[name]:.2f}" for name in names]
        size = f"{found.bytes / 1e6:.4g}"
        rows.append([case_name(found), operands, size, plan_text(found.plan), *shares])
    return versions(), head, rows
