"""Compares the engine's instruction sets on this machine, and this build with other builds, case by
case. Started by scripts/bench isa.

Exits with 1 if a case is more than 5 % slower with an instruction set than with a narrower set, or
in this build than in another build. A slow case counts only if it is slow again when repeated.
Writes build/bench/isa-cases.json.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cases import Case, cases_of
from machine import SETS, machine_facts, processor_facts
from measure import data_folder, make_data
from results import Row, fields_of
from ways import Limit
from worker import ROOT, Worker, engine
from worker import limit as limit_worker

RESULTS = ROOT / "build/bench"
ALLOWED = 1.05
LIMIT = "limit"
TURNS, SAMPLES, SECONDS = 5, 3, 0.01


@dataclass
class Compared(Row):
    """The measurements of one case. A way is an instruction set or another build."""

    plan: str = ""  # the plan of the first way
    seconds: dict[str, float] = field(default_factory=dict)  # median time of each way
    # For each pair that pairs_of returns: time of the first way / time of the second.
    ratios: dict[str, float] = field(default_factory=dict)
    fractions: dict[str, float] = field(default_factory=dict)  # limit's time / time of a way


def sets_here() -> list[str]:
    """Returns the instruction sets of this machine, widest first."""
    flags = processor_facts().get("flags", "").split()
    return [name for flag, name in SETS if flag in flags]


def pairs_of(names: list[str], others: list[str]) -> list[tuple[str, str]]:
    """Pairs each set with each narrower set, and this build with each other build. The first of a
    pair must not be slower than the second."""
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


def line(result: Compared) -> str:
    times = ", ".join(f"{name} {spent * 1e3:.3f} ms" for name, spent in result.seconds.items())
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in result.ratios.items())
    if result.fractions:
        ratios += "; fraction of the limit: "
        ratios += ", ".join(f"{name} {share:.2f}" for name, share in result.fractions.items())
    return f"{case_name(result)}: {times}; {ratios}"


def is_slower(result: Compared) -> bool:
    return any(ratio > ALLOWED for ratio in result.ratios.values())


def summary(results: list[Compared]) -> list[str]:
    lines = []
    for name in results[0].ratios if results else ():
        ratios = sorted(result.ratios[name] for result in results)
        above = sum(ratio > ALLOWED for ratio in ratios)
        lines.append(
            f"{name}: median {statistics.median(ratios):.3f}, least {ratios[0]:.2f}, most "
            f"{ratios[-1]:.2f}; {above} of {len(ratios)} above {ALLOWED}"
        )
    for name in results[0].fractions if results else ():
        shares = sorted(result.fractions[name] for result in results)
        middle = statistics.median(shares)
        lines.append(f"{name}, fraction of the limit: median {middle:.2f}, least {shares[0]:.2f}")
    return lines


def run(
    cases: list[Case],
    ways: list[Worker],
    pairs: list[tuple[str, str]],
    limit: Limit,
    with_limit: bool,
) -> list[Compared]:
    """Compares each case. If a ratio is above ALLOWED, compares the case again and uses the lower
    ratios."""
    results = []
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
                results.append(result)
                print(f"[{number}/{len(cases)}] {line(result)}", flush=True)
    finally:
        limit.close()
        for way in ways:
            way.close()
    return results


def case_name(result: Compared) -> str:
    return f"{result.suite} {result.case} {result.dtype} {result.mask}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench isa", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=("select", "sweep"), metavar="select|sweep")
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--against", type=Path, action="append", default=[], metavar="BUILD")
    parser.add_argument(
        "--isa", default=",".join(sets_here()), help="comma-separated instruction sets"
    )
    parser.add_argument("--only", default="", help="comma-separated case names")
    parser.add_argument("--every", type=int, default=1, help="measure only every n-th case")
    parser.add_argument(
        "--limit",
        action="store_true",
        help="also compare with the fastest way to move the same bytes",
    )
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
    results = run(cases, ways, pairs_of(names, others), limit, arguments.limit)
    record = {**machine_facts(), "cases": [asdict(result) for result in results]}
    (RESULTS / "isa-cases.json").write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(summary(results)))
    return 1 if any(is_slower(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
