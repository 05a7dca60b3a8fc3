#!/usr/bin/env python3
"""usage: scripts/mutate [--count N] [--seed N] [--only TEXT]

Plants small faults in what decides a Select (src/schema, src/plan, the matchers of src/graph), one
at a time in a copy of the tree, and counts which of them the tests notice: comparisons are flipped,
sources swapped, bounds dropped. Fails when fewer than 90 % are noticed. A fault that does not
compile does not count.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build/mutate"
LEAST_PERCENT = 90.0
SOURCES = (
    "src/schema/*.cpp",
    "src/plan/*.[ch]pp",
    "src/graph/match.cpp",
    "src/graph/*chain*.cpp",
    "src/graph/expression_group.cpp",
)
# Programs, and which of their tests are run: the quick ones beside the sources first.
STAGES = (
    (
        ("test_schema", "test_plan", "test_row_chain", "test_expression_group")
        + ("test_compiled_select", "plan_lines"),
        "^(onednn_select|auto_broadcast|plan|plan_cache|loop_nest|box|lines_of_tile|row_chain|"
        "expression_group|can_claim|types_fit_schema|compile_select|to_desc)[.]|near_misses|"
        "guard/plans",
    ),
    (
        ("test_run_select", "test_run_rows", "test_run_expression", "test_api", "test_strings")
        + ("test_oracle", "test_bytes_touched", "select_contract-3.2", "merge_contract-3.2")
        + ("maskwise_onednn",),
        "run_select|run_rows|row_plan|run_expression|api|dialect|strings|guard/(targets|work)|oracle|"
        "3.2/(select|merge)_contract/preload",
    ),
)
# Tests of programs that the stage does not build: these may hold the fault before. And an oracle
# for every instruction set would show no more.
LEFT_OUT = "NOT_BUILT|fuzz/|shares_its_rule|oracle.*/(sse4|avx512)|in_parallel"

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


def builds(targets: tuple[str, ...]) -> bool:
    command = ["scripts/build", "release", *targets]
    return subprocess.run(command, cwd=TREE, capture_output=True, check=False).returncode == 0


def failing_test(tests: str) -> str | None:
    # Whoever plants a fault may plant an endless loop.
    command = ["ctest", "--preset", "release", "--stop-on-failure", "--timeout", "60"]
    command += ["--parallel", str(os.cpu_count()), "-R", tests, "-E", LEFT_OUT]
    run = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    failed = re.search(r"^\s*\d+ - (.* \(.*\))$", run.stdout, re.MULTILINE)
    return failed.group(1) if failed else "ctest"


def verdict_of_tests() -> tuple[str, str]:
    """'noticed', 'survived' or 'does not compile', and the test that noticed it."""
    for targets, tests in STAGES:
        if not builds(targets):
            return "does not compile", ""
        if test := failing_test(tests):
            return "noticed", f"  by {test}"
    return "survived", ""


def try_fault(fault: Fault) -> tuple[str, str]:
    path = TREE / fault.path
    original = path.read_text()
    lines = original.splitlines(keepends=True)
    lines[fault.line - 1] = fault.after + "\n"
    path.write_text("".join(lines))
    try:
        return verdict_of_tests()
    finally:
        path.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files with this in their path")
    arguments = parser.parse_args()
    copy_tree()
    if verdict_of_tests()[0] != "survived":
        print("scripts/mutate: the tests fail without any fault")
        return 1
    faults = all_faults(arguments.only)
    random.Random(arguments.seed).shuffle(faults)
    counts = {"noticed": 0, "survived": 0, "does not compile": 0}
    for fault in faults[: arguments.count]:
        verdict, by = try_fault(fault)
        counts[verdict] += 1
        print(f"{verdict:<16} {fault}{by}", flush=True)
    tried = counts["noticed"] + counts["survived"]
    noticed = 100.0 * counts["noticed"] / max(tried, 1)
    print(f"scripts/mutate: {counts['noticed']} of {tried} noticed ({noticed:.0f} %)")
    return 0 if noticed >= LEAST_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
