#!/usr/bin/env python3
"""usage: scripts/mutate [--count N] [--seconds N] [--from N] [--seed N] [--only TEXT]

Plants small faults in the sources of the engine, the plugin and the Python package, one at a time
in a copy of the tree, and counts which of them the tests notice: comparisons are flipped, sources
swapped, bounds dropped. Fails when fewer than 90 % are noticed. A fault that does not compile does
not count, nor does a plan that has become another than tests/guard/plans.txt records: that only
says that something changed. The seed decides the order of all faults; --from leaves out the first
of them, so that a long run can be made in pieces, and --seconds ends it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build/mutate"
BUILD = TREE / "build/mutate"
LEAST_PERCENT = 90.0
MOST_MEMORY = 8 << 30  # whoever plants a fault may plant an endless loop that allocates
MOST_SECONDS = 300
FOLDERS = ("schema", "plan", "exec", "kernel", "jit", "graph", "onednn", "api")
SOURCES = (
    *(f"src/{folder}/**/*.[ch]pp" for folder in FOLDERS),
    "python/src/*.[ch]pp",
    "python/maskwise/*.py",
)


@dataclass(frozen=True)
class Stage:
    """Programs of tests, the quickest first, and tests that ctest knows how to run."""

    programs: tuple[str, ...]
    tests: str
    targets: tuple[str, ...]  # what those tests need
    left_out: str = ""  # of the programs' tests


# Two instruction sets show what nearly all would, one thread what several would; the rest is asked
# where they show nothing.
FEW = "-*/sse4:*/avx512:*in_parallel*"
STAGES = (
    Stage(
        ("test_schema", "test_tensor", "test_row_chain", "test_merged_chain")
        + ("test_expression_group", "test_compiled_select", "test_plan"),
        "",
        (),
    ),
    Stage(
        ("test_run_select", "test_strings", "test_bytes_touched", "test_api", "test_run_rows")
        + ("test_run_expression", "test_expression_code", "test_expression_nodes", "test_oracle"),
        "^3.2/(traps|merge_contract)/preload$",
        ("traps-3.2", "merge_contract-3.2", "maskwise_onednn"),
        FEW,
    ),
    Stage(
        ("test_arena", "test_fork", "test_refused_code", "test_run_select", "test_run_rows")
        + ("test_run_expression", "test_random_expressions", "test_oracle", "test_kernels"),
        "^(3.13/(.*_contract/preload|harness/Batches|claims|surroundings|traps/preload"
        "|transcripts_agree|failing_allocations)|surroundings|forced_isa.*"
        "|python/(where|out|select|dlpack|routes))$",
        ("all",),
    ),
)

# What is replaced by what. Comparisons stand between blanks, as clang-format writes them, so that
# template brackets are left alone.
FAULTS: tuple[tuple[str, str], ...] = (
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r"\bsrc_0\b", "src_1"),
    (r"\bsrc_1\b", "src_0"),
    (r"\bop_src_0\b", "op_src_1"),
    (r" - 1\b", ""),
    (r" \+ 1\b", ""),
    (r"std::min\(([^(),]+), [^(),]+\)", r"\1"),
    (r"std::max\(([^(),]+), [^(),]+\)", r"\1"),
)


@dataclass(frozen=True)
class Fault:
    path: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"


def faults_of_line(path: str, number: int, line: str) -> list[Fault]:
    if line.lstrip().startswith(("//", "#", '"')):
        return []
    code = line.split("//", 1)[0]
    found = []
    for pattern, replacement in FAULTS:
        for match in re.finditer(pattern, code):
            after = code[: match.start()] + match.expand(replacement) + code[match.end() :]
            found.append(Fault(path, number, code, after))
    return found


def all_faults(only: str) -> list[Fault]:
    found = []
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            name = str(path.relative_to(ROOT))
            if only not in name:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found += faults_of_line(name, number, line)
    return found


def copy_tree() -> None:
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for name in files:
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            continue
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)  # with a new time: an interrupted run may have built a fault
    if not (TREE / ".deps").exists():
        (TREE / ".deps").symlink_to(ROOT / ".deps")


def builds(stage: Stage) -> bool:
    command = ["cmake", "--build", str(BUILD), "--parallel", str(os.cpu_count())]
    command += ["--target", *stage.programs, *stage.targets]
    return subprocess.run(command, cwd=TREE, capture_output=True, check=False).returncode == 0


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def passes(command: list[str]) -> bool:
    try:
        run = subprocess.run(
            command,
            cwd=BUILD,
            capture_output=True,
            check=False,
            timeout=MOST_SECONDS,
            preexec_fn=limit_memory,
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def what_fails(stage: Stage, since: float) -> str | None:
    """The first program or group of tests that fails, of programs those built since then."""
    for name in stage.programs:
        program = BUILD / "bin" / name
        if program.stat().st_mtime < since:
            continue
        if not passes([str(program), "--gtest_fail_fast", f"--gtest_filter=*{stage.left_out}"]):
            return name
    if not stage.tests or passes(["ctest", "-R", stage.tests, "--no-tests=error"]):
        return None
    return stage.tests


def verdict_of_tests(since: float) -> tuple[str, str]:
    """'noticed', 'survived' or 'does not compile', and what noticed it."""
    for stage in STAGES:
        if not builds(stage):
            return "does not compile", ""
        if name := what_fails(stage, since):
            return "noticed", f"  by {name}"
    return "survived", ""


def try_fault(fault: Fault) -> tuple[str, str]:
    path = TREE / fault.path
    original = path.read_text()
    lines = original.splitlines(keepends=True)
    lines[fault.line - 1] = fault.after + "\n"
    path.write_text("".join(lines))
    try:
        return verdict_of_tests(path.stat().st_mtime)
    finally:
        path.write_text(original)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no fault after")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files with this in their path")
    return parser.parse_args()


def report(verdicts: Counter[tuple[str, str]]) -> int:
    """A line for each folder, and the sum; the verdicts are by folder and word."""
    folders = sorted({folder for folder, _ in verdicts})
    noticed = sum(count for (_, word), count in verdicts.items() if word == "noticed")
    survived = sum(count for (_, word), count in verdicts.items() if word == "survived")
    for folder in folders:
        seen, missed = verdicts[folder, "noticed"], verdicts[folder, "survived"]
        print(f"{folder:<16} {seen} of {seen + missed} noticed")
    percent = 100.0 * noticed / max(noticed + survived, 1)
    print(f"scripts/mutate: {noticed} of {noticed + survived} noticed ({percent:.0f} %)")
    return 0 if percent >= LEAST_PERCENT else 1


def main() -> int:
    arguments = parse()
    end = time.monotonic() + arguments.seconds
    copy_tree()
    subprocess.run(["scripts/build", "--configure", "mutate"], cwd=TREE, check=True)
    if verdict_of_tests(since=0)[0] != "survived":
        print("scripts/mutate: the tests fail without any fault")
        return 1
    faults = all_faults(arguments.only)
    random.Random(arguments.seed).shuffle(faults)
    verdicts: Counter[tuple[str, str]] = Counter()
    for fault in faults[arguments.first : arguments.first + arguments.count]:
        if time.monotonic() > end:
            break
        verdict, by = try_fault(fault)
        verdicts[str(Path(fault.path).parent), verdict] += 1
        print(f"{verdict:<16} {fault}{by}", flush=True)
    return report(verdicts)


if __name__ == "__main__":
    sys.exit(main())
