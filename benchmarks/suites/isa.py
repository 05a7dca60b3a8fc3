"""Compares the engine with itself, case by case: on each instruction set of this machine, and built
from other commits. Started by scripts/bench isa.

Ends with 1 where an instruction set takes longer than a lesser one by more than 5 %, or this build
longer than another, twice. A run of all cases with --limit leaves two tables: each set against the
numbers to reach, and the cases that are slowest on one of them.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cases import Case, cases_of
from machine import CLASSES, ISA_NAMES, machine_facts, processor_facts
from measure import data_folder, make_data, maskwise_version
from results import Row, Rows, fields_of
from table import Cells, keep
from targets import Measured, beyond_l2, fractions, large_and_direct
from ways import Limit
from worker import ROOT, Worker, engine
from worker import limit as limit_worker

RESULTS = ROOT / "build/bench"
VERSIONS = f"maskwise {maskwise_version()}, without oneDNN"
ALLOWED = 1.05
LIMIT = "limit"
TURNS, SAMPLES, SECONDS = 5, 3, 0.01
# Of the limit.
WANTED = {
    "select": {"median": 0.9, "least": 0.5},
    "sweep": {"median": 0.85, "p5": 0.5, "least": 0.25},
}
SLOWEST = 10


@dataclass
class Compared(Row):
    """Median seconds of a case by each way, and how much longer it took than the way it must not be
    slower than, and the limit's time over its own: medians of the turns."""

    plan: str = ""  # of the first way
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    fractions: dict[str, float] = field(default_factory=dict)  # of the limit, by way


def sets_here() -> list[str]:
    """Widest first; plain C++ is for what has none of them."""
    flags = processor_facts().get("flags", "").split()
    return [name for flag, name in CLASSES if flag in flags]


def pairs_of(names: list[str], others: list[str]) -> list[tuple[str, str]]:
    """What must not be slower than what: a set than each lesser one, this build than others."""
    lesser = [(name, other) for i, name in enumerate(names) for other in names[i + 1 :]]
    return [*lesser, *((names[0], other) for other in others)]


def take_turns(ways: list[Worker], limit: Limit | None) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = defaultdict(list)
    for turn in range(TURNS):
        for way in ways[:: 1 if turn % 2 == 0 else -1]:
            samples = way.ask(do="time", samples=SAMPLES, max_seconds=SECONDS)["samples"]
            taken[way.impl].append(statistics.median(samples))
        if limit:
            if turn == 0:
                limit.time_kept(SAMPLES, SECONDS)
            taken[LIMIT].append(statistics.median(limit.time_best(SAMPLES, SECONDS)))
    return taken


def medians_of(one: list[float], other: list[float]) -> float:
    return statistics.median(mine / its for mine, its in zip(one, other, strict=True))


def compare(
    case: Case,
    ways: list[Worker],
    limit: Limit | None,
    pairs: list[tuple[str, str]],
    folder: str,
) -> Compared:
    with ThreadPoolExecutor(len(ways)) as pool:
        answers = list(pool.map(lambda way: way.ask(do="load", case=case.request(folder)), ways))
    for way, answer in zip(ways, answers, strict=True):
        if answer["state"] != "right":
            raise RuntimeError(f"{case.suite} {case.name}: {way.impl} is {answer['state']}")
    taken = take_turns(ways, limit)
    seconds = {name: statistics.median(spent) for name, spent in taken.items()}
    ratios = {f"{one} / {other}": medians_of(taken[one], taken[other]) for one, other in pairs}
    names = [way.impl for way in ways if LIMIT in taken]
    return Compared(
        **fields_of(case),
        plan=answers[0]["plan"],
        seconds=seconds,
        ratios=ratios,
        fractions={name: medians_of(taken[LIMIT], taken[name]) for name in names},
    )


def line(found: Compared) -> str:
    times = ", ".join(f"{name} {spent * 1e3:.3f} ms" for name, spent in found.seconds.items())
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in found.ratios.items())
    if found.fractions:
        ratios += "; of the limit "
        ratios += ", ".join(f"{name} {share:.2f}" for name, share in found.fractions.items())
    return f"{case_name(found)}: {times}; {ratios}"


def is_slower(found: Compared) -> bool:
    return any(ratio > ALLOWED for ratio in found.ratios.values())


def summary(every: list[Compared]) -> list[str]:
    lines = []
    for name in every[0].ratios if every else ():
        ratios = sorted(found.ratios[name] for found in every)
        above = sum(ratio > ALLOWED for ratio in ratios)
        lines.append(
            f"{name}: median {statistics.median(ratios):.3f}, least {ratios[0]:.2f}, most "
            f"{ratios[-1]:.2f}; {above} of {len(ratios)} above {ALLOWED}"
        )
    return lines


def run(
    cases: list[Case],
    ways: list[Worker],
    pairs: list[tuple[str, str]],
    limit: Limit,
    with_limit: bool,
) -> list[Compared]:
    """What is slower is compared once more, and the better of both counts."""
    every = []
    try:
        with data_folder() as folder:
            for number, case in enumerate(cases, 1):
                needed = make_data(case, folder)
                used = limit if with_limit else None
                if used:
                    used.bind(*needed)
                result = compare(case, ways, used, pairs, folder)
                if is_slower(result):
                    again = compare(case, ways, None, pairs, folder)
                    result.ratios = {
                        name: min(ratio, again.ratios[name])
                        for name, ratio in result.ratios.items()
                    }
                result.bytes = sum(needed)
                every.append(result)
                print(f"[{number}/{len(cases)}] {line(result)}", flush=True)
    finally:
        limit.close()
        for way in ways:
            way.close()
    return every


def case_name(found: Compared) -> str:
    return f"{found.suite} {found.case} {found.dtype} {found.mask}"


def rows_of(found: Compared, name: str) -> Rows:
    """The case by one instruction set, as the targets read it."""
    median, share = found.seconds[name], found.fractions[name]
    row = replace(found, impl="maskwise", seconds_median=median, limit_fraction=share)
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


def isa_table(every: list[Compared], names: list[str], native: str) -> Cells:
    """Each instruction set against the numbers to reach."""
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
    return VERSIONS, head, rows


def plan_text(plan: str) -> str:
    """The box of how large a nest, how each operand is read and dst written, and the kernel."""
    parts = dict(word.split("=", 1) for word in plan.split())
    operands = " ".join(parts[operand] for operand in ("cond", "src_0", "src_1", "dst"))
    return f"{parts['box']} of {parts['nest']}: {operands}, {parts['kernel']}"


def slowest_of(every: list[Compared], name: str) -> list[Compared]:
    return sorted(every, key=lambda found: found.fractions[name])[:SLOWEST]


def slowest_table(every: list[Compared], names: list[str]) -> Cells:
    """The slowest cases of each instruction set, by all of them."""
    shown = {case_name(found): found for name in names for found in slowest_of(every, name)}
    cases = sorted(shown.values(), key=lambda found: min(found.fractions[name] for name in names))
    head = ["case", "cond, src_0, src_1", "MB", "plan", *(ISA_NAMES[name] for name in names)]
    rows = []
    for found in cases:
        operands = f"{found.cond}, {found.src_0}, {found.src_1}"
        shares = [f"{found.fractions[name]:.2f}" for name in names]
        size = f"{found.bytes / 1e6:.4g}"
        rows.append([case_name(found), operands, size, plan_text(found.plan), *shares])
    return VERSIONS, head, rows


def why_partial(arguments: argparse.Namespace) -> str:
    """Of some cases the tables would look better or worse than the engine is."""
    if missing := [suite for suite in WANTED if suite not in arguments.suites]:
        return f"suite {missing[0]} was not measured"
    if arguments.only or arguments.every != 1:
        return f"of some cases: --only '{arguments.only}' --every {arguments.every}"
    return "" if arguments.limit else "measured without --limit"


def keep_tables(every: list[Compared], names: list[str], arguments: argparse.Namespace) -> None:
    if why := why_partial(arguments):
        print(f"no tables are kept: {why}")
        return
    keep(RESULTS, "isa", *isa_table(every, names, sets_here()[0]))
    keep(RESULTS, "slowest", *slowest_table(every, names))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench isa", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=("select", "sweep"), metavar="select|sweep")
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--against", type=Path, action="append", default=[], metavar="BUILD")
    parser.add_argument("--isa", default=",".join(sets_here()), help="of this machine, with commas")
    parser.add_argument("--only", default="", help="cases by name, with commas")
    parser.add_argument("--every", type=int, default=1, help="each n-th case only")
    parser.add_argument("--limit", action="store_true", help="compare with the limit, too")
    arguments = parser.parse_args()
    arguments.suites = arguments.suites or ["select", "sweep"]
    return arguments


def main() -> int:
    arguments = parse()
    names = arguments.isa.split(",")
    others = [f"other {number}" for number in range(1, len(arguments.against) + 1)]
    ways = [engine(arguments.build, name, MASKWISE_MAX_ISA=name) for name in names]
    built = zip(others, arguments.against, strict=True)
    ways += [engine(build, other, MASKWISE_MAX_ISA=names[0]) for other, build in built]
    limit = Limit(limit_worker(arguments.build))
    suites = [cases_of(suite, full=False, only=arguments.only) for suite in arguments.suites]
    cases = [case for suite in suites for case in suite][:: arguments.every]
    every = run(cases, ways, pairs_of(names, others), limit, arguments.limit)
    kept = {**machine_facts(), "cases": [asdict(found) for found in every]}
    (RESULTS / "isa-cases.json").write_text(json.dumps(kept, indent=1) + "\n")
    keep_tables(every, names, arguments)
    print("\n".join(summary(every)))
    return 1 if any(is_slower(found) for found in every) else 0


if __name__ == "__main__":
    sys.exit(main())
