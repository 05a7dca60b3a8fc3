"""Measures Select in Maskwise and in other libraries. Also measures the limit: the fastest way to
move the same bytes on this machine.

Started by scripts/bench, which installs and builds everything.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import extras
import table
import targets
from cases import Case, cases_of
from machine import machine_facts
from measure import Bench, Effort, data_folder
from results import Row, by_case, save_rows
from ways import Limit
from worker import PEERS, ROOT, Worker, client, engine, limit, onednn_alone, peer

RESULTS = ROOT / "build/bench"
SUITES = ("select", "small", "sweep", "types")
ENGINE = "engine"  # a value of --lane


def effort_for(suite: str, full: bool) -> Effort:
    if suite == "sweep":
        return Effort(samples=3)
    if suite == "small":
        return Effort(turns=9, pairs=1, samples=10)
    return Effort(turns=11, repeats_slow=True) if full else Effort()


def workers_for(suite: str, build: Path, lane: str) -> list[Worker]:
    """Returns Maskwise's process, then the processes of the libraries to compare with Maskwise."""
    if lane == ENGINE:
        return [engine(build)]
    if suite == "types":
        return [engine(build), *(peer(name) for name in PEERS)]
    clients = [client("maskwise", build, lane)]
    if suite == "sweep":
        return clients
    return [*clients, *onednn_alone(build, lane), *(peer(name) for name in PEERS)]


def say(text: str) -> None:
    print(text, flush=True)


def run_cases(bench: Bench, cases: list[Case], effort: Effort) -> list[Row]:
    """Measures all cases. After an interrupt, returns the results so far."""
    rows: list[Row] = []
    others = [worker.impl for worker in bench.peers]
    begin = time.monotonic()
    try:
        for number, case in enumerate(cases, 1):
            measured = bench.run(case, effort)
            rows += measured
            cells = table.case_row({row.impl: row for row in measured}, others)
            done = f"[{number}/{len(cases)} {time.monotonic() - begin:.0f}s]"
            say(f"{done} {table.line_of(cells)}")
            if bench.plan:
                say(f"    {bench.plan}")
        repeat_above_limit(bench, cases, [row for row in rows if targets.is_above(row)], effort)
    except KeyboardInterrupt:
        say(f"interrupted; {len(by_case(rows))} of {len(cases)} cases measured")
    return rows


def repeat_above_limit(bench: Bench, cases: list[Case], above: list[Row], effort: Effort) -> None:
    """Repeats the cases that seem faster than the limit, in two more rounds."""
    for case in 2 * [case for case in cases if any(row.is_of(case) for row in above)]:
        rows = [row for row in above if row.is_of(case)]
        again = {row.impl: row for row in bench.run(case, effort, {row.impl for row in rows})}
        for row in rows:
            row.again.append((again[row.impl].limit_fraction if row.impl in again else None) or 0.0)
    for row in above:
        shares = ", ".join(f"{share:.2f}" for share in row.again)
        name = f"{row.case} {row.dtype} {row.mask}, {row.impl}"
        say(f"above the limit: {name}: {row.limit_fraction:.2f}, again {shares}")


def run_suite(suite: str, arguments: argparse.Namespace, cases: list[Case]) -> list[Row]:
    effort = effort_for(suite, arguments.full)
    with data_folder() as folder:
        workers = workers_for(suite, arguments.build, arguments.lane)
        others = [worker.impl for worker in workers[1:]]
        say(f"\nsuite {suite}: {len(cases)} cases\n{table.markdown(table.head(others))}")
        bench = Bench(Limit(limit(arguments.build)), workers[0], workers[1:], folder)
        try:
            rows = run_cases(bench, cases, effort)
            if suite == "small" and arguments.native and arguments.lane != ENGINE:
                rows += extras.native_row(bench, cases, arguments.build, arguments.native, effort)
        finally:
            bench.close()
    return rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", help=f"suites to run: {', '.join(SUITES)}; default: all"
    )
    parser.add_argument(
        "--lane",
        default="3.13",
        help="the oneDNN to measure; 'engine' measures only Maskwise's engine, prints plans below"
        " the rows and stores no results",
    )
    parser.add_argument("--full", action="store_true", help="more cases, more repetitions")
    parser.add_argument(
        "--only", default="", help="comma-separated case names (no results are stored)"
    )
    parser.add_argument(
        "--no-targets", action="store_true", help="exit with 0 even if a target is missed"
    )
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--native", default="3.2", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for suite in arguments.suites:
        if suite not in SUITES:
            parser.error(f"no suite '{suite}'; there are {', '.join(SUITES)}")
    return arguments


def main() -> int:
    arguments = parse()
    RESULTS.mkdir(parents=True, exist_ok=True)
    facts = machine_facts()
    say("\n".join(f"{name}: {value}" for name, value in facts.items()))
    all_rows: list[Row] = []
    passing = arguments.only or arguments.lane == ENGINE
    for suite in arguments.suites or SUITES:
        cases = cases_of(suite, arguments.full, arguments.only)
        rows = run_suite(suite, arguments, cases)
        if not passing:
            all_rows = save_rows(RESULTS / "results.json", suite, rows)
    if passing:
        return 0
    notes = extras.measure_notes(arguments.build, arguments.lane, arguments.native)
    (RESULTS / "machine.json").write_text(json.dumps({**facts, **notes}, indent=1) + "\n")
    cases_measured = by_case([row for row in all_rows if row.suite in SUITES])
    lines = targets.lines_of(cases_measured, notes)
    say(targets.report(cases_measured, lines, facts))
    return 0 if arguments.no_targets else tell(targets.missed(lines))


def tell(missed: list[str]) -> int:
    for line in missed:
        print(line, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
