#!/usr/bin/env python3
"""usage: scripts/nightly [--list] [--minutes N] [STAGE...]

What takes too long for every change: mutation, coverage, fuzzing, soak, sanitizers, memcheck and
real clients, one after the other. Each has its minutes, or N of them; a stage that needs more is
ended and has failed. A failing stage ends nothing but itself, and the whole with 1.

docs/figures/nightly.json keeps the last result of each, of which the table in docs/reliability.md
is written; with uncommitted changes nothing is kept. build/nightly has the logs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks/suites"))
from machine import stamp  # noqa: E402

RECORDS = "docs/figures/nightly.json"
LOGS = ROOT / "build/nightly"
SHARE = 0.75  # of a stage's minutes that it is told to use; the rest is for building


@dataclass(frozen=True)
class Stage:
    """In a command {seconds} is how long it shall take, {day} a number that is new every day."""

    name: str
    command: str
    minutes: float
    figures: str  # the lines that say what came out
    parts: int = 1  # of which each takes {seconds}

    def words(self) -> list[str]:
        seconds = int(60 * self.minutes * SHARE / self.parts)
        day = datetime.now(UTC).toordinal()
        return self.command.format(seconds=seconds, day=day).split()


LANE_COUNTS = r"^ *((?:\S+|no lane): \d+ (?:of \d+ )?passed.*)"
STAGES = (
    Stage(
        "mutate",
        "scripts/mutate --seed {day} --count 1000 --seconds {seconds}",
        90,
        r"^scripts/mutate: (.*)",
    ),
    Stage("coverage", "scripts/coverage --build", 60, r"^scripts/coverage: (.*)"),
    # Ten targets, the sequences once for each lane besides, and the models for each runtime.
    Stage(
        "fuzz",
        "scripts/fuzz --seconds {seconds}",
        110,
        r"^(.*(?:all right|_units:.*|failed.*))$",
        14,
    ),
    Stage("soak", "scripts/soak {seconds}", 40, r"^scripts/soak: (.*)"),
    Stage("asan", "scripts/test asan", 60, LANE_COUNTS),
    Stage("tsan", "scripts/test tsan", 120, LANE_COUNTS),
    Stage("memcheck", "scripts/memcheck", 60, r"^memcheck (.*)"),
    Stage("clients", "scripts/clients", 60, r"^(\S+: (?:passed|FAILED|not to be had).*)"),
)


@dataclass(frozen=True)
class Record:
    """The last result of a stage."""

    command: str
    commit: str
    date: str
    machine: str
    verdict: str
    minutes: float
    figures: str


def read_records(path: Path) -> dict[str, Record]:
    """By stage."""
    if not path.exists():
        return {}
    return {name: Record(**entries) for name, entries in json.loads(path.read_text()).items()}


def keep(path: Path, name: str, record: Record) -> None:
    records = {**read_records(path), name: record}
    text = json.dumps({key: asdict(value) for key, value in records.items()}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def run(command: list[str], log: Path, seconds: float) -> str:
    """The verdict. Whatever the command has started ends with it."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return "passed" if process.wait(timeout=seconds) == 0 else "FAILED"
        except subprocess.TimeoutExpired:
            return "FAILED: out of time"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def figures_of(text: str, pattern: str) -> str:
    found = re.finditer(pattern, text, re.MULTILINE)
    return "; ".join(match[1].replace("|", "/") for match in found)


def run_stage(stage: Stage) -> Record:
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{stage.name}.log"
    facts = {key: value for key, value in stamp().items() if key in ("commit", "date", "machine")}
    words, begin = stage.words(), time.monotonic()
    verdict = run(words, log, 60 * stage.minutes)
    minutes = round((time.monotonic() - begin) / 60, 1)
    figures = figures_of(log.read_text(errors="replace"), stage.figures)
    if verdict == "passed" and not figures:
        verdict = "FAILED: no figures"
    return Record(
        **facts, command=" ".join(words), verdict=verdict, minutes=minutes, figures=figures
    )


def run_stages(stages: list[Stage], records: Path) -> int:
    failed = []
    for stage in stages:
        record = run_stage(stage)
        if record.verdict != "passed":
            failed.append(stage.name)
        print(f"{record.minutes:6.1f} minutes  {stage.name:<9} {record.verdict}: {record.figures}")
        if record.commit.endswith("+"):
            print("scripts/nightly: not kept: there are uncommitted changes", flush=True)
        else:
            keep(records, stage.name, record)
    print(f"scripts/nightly: FAILED: {' '.join(failed)}" if failed else "scripts/nightly: passed")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/nightly", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    parser.add_argument(
        "--list", action="store_true", help="the stages, their minutes and commands"
    )
    parser.add_argument("--minutes", type=float, help="for each stage, instead of its own")
    arguments = parser.parse_args()
    if arguments.list:
        for stage in STAGES:
            print(f"{stage.name:<9} {stage.minutes:>4} minutes  {' '.join(stage.words())}")
        return 0
    known = {stage.name: stage for stage in STAGES if (ROOT / stage.words()[0]).exists()}
    if unknown := [name for name in arguments.stages if name not in known]:
        parser.error(f"no stage '{unknown[0]}'; there are {', '.join(known)}")
    chosen = [known[name] for name in arguments.stages or known]
    if arguments.minutes:
        chosen = [replace(stage, minutes=arguments.minutes) for stage in chosen]
    status = run_stages(chosen, ROOT / RECORDS)
    subprocess.run([str(ROOT / "scripts/write_figures.py")], check=False)
    return status


if __name__ == "__main__":
    sys.exit(main())
