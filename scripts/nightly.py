#!/usr/bin/env python3
"""usage: scripts/nightly [--list] [STAGE[=MINUTES]...]

Runs the tests that take too long for every change, one after the other: mutation, coverage,
fuzzing, soak, sanitizers, memcheck, AArch64, plain environments, versions of torch, model types and
real clients. Prints the result of each stage; build/nightly has the logs.

A stage that exceeds its MINUTES (--list prints the defaults) is stopped and fails. If a stage
fails, the other stages still run, and the exit status is 1. `mutate` adds to the verdicts of its
earlier runs on the same sources.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/nightly"
SHARE = 0.75  # {seconds} is this share of a stage's minutes; the rest is for building


@dataclass(frozen=True)
class Stage:
    """{seconds} in `command` stands for the seconds of each part of the command."""

    name: str
    command: str
    minutes: float
    figures: str  # pattern of the result lines in the output
    turns: int = 1  # number of parts of the command; each takes {seconds}

    def words(self) -> list[str]:
        seconds = int(60 * self.minutes * SHARE / self.turns)
        return self.command.format(seconds=seconds).split()


LANE_COUNTS = r"^ *((?:\S+|no lane): \d+ (?:of \d+ )?passed.*)"
# Sanitizers run with the newest and the oldest oneDNN, for which the plugin's version checks take
# different branches.
STAGES = (
    Stage("mutate", "scripts/mutate --seconds {seconds}", 20, r"^scripts/mutate: (.*)"),
    Stage("coverage", "scripts/coverage --build", 40, r"^scripts/coverage: (.*)"),
    # 16 parts: the 4 libFuzzer targets, and 12 calls of run_rounds with 4 installed lanes.
    Stage(
        "fuzz",
        "scripts/fuzz --seconds {seconds}",
        125,
        r"^(.*(?:all right|_units:.*|failed.*))$",
        16,
    ),
    Stage("soak", "scripts/soak {seconds}", 40, r"^scripts/soak: (.*)"),
    Stage("asan", "scripts/test asan --lanes 3.13,3.2", 60, LANE_COUNTS),
    Stage("tsan", "scripts/test tsan --lanes 3.13,3.2", 90, LANE_COUNTS),
    Stage("memcheck", "scripts/memcheck", 60, r"^memcheck (.*)"),
    Stage("aarch64", "scripts/test_aarch64", 60, r"^scripts/test_aarch64: (.*)"),
    Stage("plain", "scripts/plain", 90, r"^scripts/plain: (.*)"),
    Stage("versions", "scripts/plain --versions", 90, r"^scripts/plain: (.*)"),
    Stage("models", "scripts/every_model", 90, r"^every_model: (.*)"),
    Stage("clients", "scripts/clients", 60, r"^(\S+: (?:passed|FAILED|not available).*)"),
)


@dataclass(frozen=True)
class Result:
    verdict: str
    minutes: float
    figures: str


def run(command: list[str], log: Path, seconds: float) -> str:
    """Runs the command, kills its remaining processes, and returns the verdict."""
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
    matches = re.finditer(pattern, text, re.MULTILINE)
    return "; ".join(match[1].replace("|", "/") for match in matches)


def run_stage(stage: Stage) -> Result:
    LOGS.mkdir(parents=True, exist_ok=True)
    log, begin = LOGS / f"{stage.name}.log", time.monotonic()
    verdict = run(stage.words(), log, 60 * stage.minutes)
    minutes = (time.monotonic() - begin) / 60
    figures = figures_of(log.read_text(errors="replace"), stage.figures)
    if verdict == "passed" and not figures:
        verdict = "FAILED: no figures"
    return Result(verdict, minutes, figures)


def run_stages(stages: list[Stage]) -> int:
    failed = []
    for stage in stages:
        result = run_stage(stage)
        if result.verdict != "passed":
            failed.append(stage.name)
        print(
            f"{result.minutes:6.1f} minutes  {stage.name:<9} {result.verdict}: {result.figures}",
            flush=True,
        )
    print(f"scripts/nightly: FAILED: {' '.join(failed)}" if failed else "scripts/nightly: passed")
    return 1 if failed else 0


def chosen_stages(arguments: list[str]) -> list[Stage]:
    """Parses STAGE[=MINUTES] arguments. Without arguments, returns all stages."""
    known = [stage for stage in STAGES if (ROOT / stage.words()[0]).exists()]
    chosen = [] if arguments else known
    for argument in arguments:
        name, _, minutes = argument.partition("=")
        matches = [stage for stage in known if name == stage.name]
        if not matches:
            raise SystemExit(f"no stage '{name}'; there are {', '.join(s.name for s in known)}")
        chosen += [replace(s, minutes=float(minutes)) if minutes else s for s in matches]
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/nightly", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE[=MINUTES]")
    parser.add_argument(
        "--list", action="store_true", help="print the stages, their minutes and commands"
    )
    arguments = parser.parse_args()
    chosen = chosen_stages(arguments.stages)
    if arguments.list:
        for stage in chosen:
            print(f"{stage.name:<9} {stage.minutes:>4} minutes  {' '.join(stage.words())}")
        return 0
    return run_stages(chosen)


if __name__ == "__main__":
    sys.exit(main())
