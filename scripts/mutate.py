#!/usr/bin/env python3
"""usage: scripts/mutate [--count N] [--from N] [--seed N] [--only TEXT]

Plants small faults in what decides a Select (src/schema, src/plan, the matchers of src/graph), one
at a time in a copy of the tree, and counts which of them the tests notice: comparisons are flipped,
sources swapped, bounds dropped. Fails when fewer than 90 % are noticed. A fault that does not
compile does not count. The seed decides the order of all faults; --from leaves out the first of
them, so that a long run can be made in pieces.
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build/mutate"
BUILD = TREE / "build/mutate"
LEAST_PERCENT = 90.0
MOST_MEMORY = 8 << 30  # whoever plants a fault may plant an endless loop that allocates
MOST_SECONDS = 60
SOURCES = (
    "src/schema/*.cpp",
    "src/plan/*.[ch]pp",
    "src/graph/match.cpp",
    "src/graph/*chain*.cpp",
    "src/graph/expression_group.cpp",
)


@dataclass(frozen=True)
class Stage:
    """Programs of tests, the quickest first, and tests that ctest knows how to run."""

    programs: tuple[str, ...]
    tests: str
    targets: tuple[str, ...]  # what those tests need


STAGES = (
    Stage(
        ("test_schema", "test_row_chain", "test_merged_chain", "test_expression_group")
        + ("test_compiled_select", "test_plan"),
        "^guard/plans$",
        ("plan_lines",),
    ),
    Stage(
        ("test_run_select", "test_strings", "test_bytes_touched", "test_api", "test_run_rows")
        + ("test_run_expression", "test_oracle"),
        "^3.2/(select|merge)_contract/preload$",
        ("select_contract-3.2", "merge_contract-3.2", "maskwise_onednn"),
    ),
)
# Two instruction sets show what all would, one thread what several would.
LEFT_OUT = "-*/sse4:*/avx512:*in_parallel*"

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
        if not passes([str(program), "--gtest_fail_fast", f"--gtest_filter={LEFT_OUT}"]):
            return name
    return None if passes(["ctest", "-R", stage.tests, "--no-tests=error"]) else stage.tests


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files with this in their path")
    arguments = parser.parse_args()
    copy_tree()
    subprocess.run(["scripts/build", "--configure", "mutate"], cwd=TREE, check=True)
    if verdict_of_tests(since=0)[0] != "survived":
        print("scripts/mutate: the tests fail without any fault")
        return 1
    faults = all_faults(arguments.only)
    random.Random(arguments.seed).shuffle(faults)
    counts = {"noticed": 0, "survived": 0, "does not compile": 0}
    chosen = faults[arguments.first : arguments.first + arguments.count]
    for fault in sorted(chosen, key=lambda f: f.path):  # a file mended is not compiled by itself
        verdict, by = try_fault(fault)
        counts[verdict] += 1
        print(f"{verdict:<16} {fault}{by}", flush=True)
    tried = counts["noticed"] + counts["survived"]
    noticed = 100.0 * counts["noticed"] / max(tried, 1)
    print(f"scripts/mutate: {counts['noticed']} of {tried} noticed ({noticed:.0f} %)")
    return 0 if noticed >= LEAST_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
