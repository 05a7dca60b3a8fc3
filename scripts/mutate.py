#!/usr/bin/env python3
"""usage: scripts/mutate [--seconds N] [--count N] [--only TEXT]

Plants small faults (reversed comparisons, loops with one step too many, swapped sources, missing
bounds) in the sources of the engine, the plugin, the integrations and the Python package, and
counts how many the tests notice. Each processor tests one fault at a time in its own copy of the
tree: it builds and runs the tests of the changed folder, fastest first, until one fails. The script
fails if the tests notice fewer than 90 % of the faults.

These faults do not count:
- a fault that does not compile, or that produces identical objects
- a fault in src/plan that changes only speed: a plan in tests/guard/plans.txt changes, but no
  result and no memory access
- any fault in a line that ends in `// mutate.py: skip`, because no test can notice it: prefetches,
  when other threads see streaming stores, and the choice between two ways to the same result

The order of faults depends only on their text. build/mutate/verdicts.json stores the verdicts until
the sources change. Until then, each run tests further faults and adds verdicts.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build/mutate"
KEPT = WORK / "verdicts.json"
LEAST_PERCENT = 90.0
MOST_MEMORY = 8 << 30  # a planted fault may be an endless loop that allocates
SLOWER = 5  # tests fail after 10 seconds plus this many times their time without a fault
FOLDERS = ("schema", "plan", "exec", "attention", "kernel", "graph", "fusion", "onednn", "api")
SOURCES = (
    *(f"src/{folder}/**/*.[ch]pp" for folder in FOLDERS),
    "integrations/**/*.[ch]pp",
    "python/src/*.[ch]pp",
    "python/maskwise/*.py",
)
NOT_BUILT = ("src/exec/parallel_std.cpp",)  # replaces parallel_tbb.cpp under ThreadSanitizer
# The verdicts depend on these files.
STATE = ("include", "src", "integrations", "python", "tests", "scripts/mutate.py")

# ctest tests, with the targets to build for each.
CONTRACTS = {
    "3.2/traps/preload": "traps-3.2",
    "3.2/merge_contract/preload": "merge_contract-3.2",
    "3.13/merge_contract/preload": "merge_contract-3.13",
    "3.13/redescribed_contract/preload": "redescribed_contract-3.13",
    "3.13/lists_contract/preload": "lists_contract-3.13",
    "3.13/traps/preload": "traps-3.13",
    "3.13/failing_allocations": "failing_allocations-3.13",
    "3.13/claims": "maskwise-bench",
    "3.2/surroundings": "surroundings-3.2",
    "info": "maskwise-info",
    "3.13/harness/Attention": "maskwise-bench maskwise-bench-faulty",
    "fuzz/attention": "fuzz_attention",
    "fuzz/select": "fuzz_select",
    "fuzz/graph_chains_3.13": "fuzz_graph_chains_3.13",
    "fuzz/graph_chains_3.7": "fuzz_graph_chains_3.7",
    "3.7/lists_contract/preload": "lists_contract-3.7",
    "3.7/traps/preload": "traps-3.7",
    "3.13/sizes_contract/preload": "sizes_contract-3.13",
    "3.13/failing_tasks": "failing_tasks-3.13",
}
PACKAGE = "maskwise_python maskwise_onnxruntime maskwise_onednn"
UNITS = "test_schema test_compiled_select test_plan test_run_rows test_run_select test_oracle"
ENGINE = f"{UNITS} test_strings test_bytes_touched test_lines_written test_api"
ATTENTION = "test_mask_map test_attention test_attention_threads fuzz/attention"
GRAPHS = (
    "test_row_chain test_merged_chain test_compiled_select test_op_set"
    " test_attention_chain test_graph_index"
)
PLUGIN = " ".join(name for name in CONTRACTS if name[0] == "3" or name == "info")
MERGED = "fuzz/graph_chains_3.13 fuzz/graph_chains_3.7"


def files_of(host: str) -> str:
    names = (path.stem for path in (ROOT / "python/tests").glob(f"test_{host}*.py"))
    return " ".join(name.removeprefix("test_") for name in names if not name.endswith("_models"))


# For each folder: its tests, and tests that run if the earlier tests notice nothing.
ASKED = {
    "src/schema": (ENGINE, PLUGIN),
    "src/plan": (f"{ENGINE}", f"test_huge_sizes fuzz/select {PLUGIN}"),
    "src/exec": (
        f"{ENGINE} test_arena test_fork",
        f"fuzz/select {ATTENTION} {PLUGIN}",
    ),
    "src/kernel": (
        "test_kernels test_run_rows test_run_select test_attention_chain",
        f"{ATTENTION} test_oracle test_plan test_bytes_touched test_lines_written fuzz/select",
    ),
    "src/attention": (
        f"{ATTENTION} test_huge_sizes",
        "attention onnxruntime_fused_attention 3.13/harness/Attention 3.13/sizes_contract/preload",
    ),
    "src/graph": (GRAPHS, PLUGIN, MERGED),
    "src/fusion": (
        f"{GRAPHS} onnxruntime_fusion onnxruntime_fused_attention openvino_softmax",
        PLUGIN,
        MERGED,
    ),
    "src/onednn": ("3.2/traps/preload 3.13/merge_contract/preload", PLUGIN, MERGED),
    "src/api": (
        "test_api test_api_contract test_strings test_attention_threads test_huge_sizes",
        "attention select",
    ),
    "integrations/onnxruntime": (files_of("onnxruntime"), "onnxruntime_models"),
    "integrations/openvino": (files_of("openvino"), "openvino_models"),
    "python/src": ("where select out dlpack routes attention", "onnx package"),
    "python/maskwise": (
        "attention select where onnxruntime openvino_limits",
        "arguments routes dlpack dask package onnx onnx_attention peers",
    ),
}

# This test runs last. A fault that only this test notices does not count.
PLANS = "guard/plans"
CONTRACTS[PLANS] = "plan_lines"

# Patterns and their replacements. The spaces around comparisons exclude template brackets.
Faults = tuple[tuple[str, str], ...]
LESS_ONE = r" - 1\b"
FAULTS: Faults = (
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r"\bsrc_0\b", "src_1"),
    (r"\bsrc_1\b", "src_0"),
    (r"\bop_src_0\b", "op_src_1"),
    (LESS_ONE, ""),
    (r" \+ 1\b", ""),
    (r"std::min\(([^(),]+), [^(),]+\)", r"\1"),
    (r"std::max\(([^(),]+), [^(),]+\)", r"\1"),
)
# In a loop's condition, the fault moves the bound by one. Other comparisons are reversed, because
# both branches often give the same result at the bound, so no test could notice a moved bound.
IN_LOOPS: Faults = ((r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "))
ELSEWHERE: Faults = ((r" < ", " >= "), (r" <= ", " > "), (r" > ", " <= "), (r" >= ", " < "))
# A quotient that rounds up; the fault rounds it down. Removing only the `- 1` would sometimes add 1
# to the quotient, which is harmless in buffer sizes.
QUOTIENT = re.compile(r"\(([^()]+) \+ ([\w.]+) - 1\) / \2\b")
SKIPPED = re.compile(r"// mutate\.py: skip$")
# A loop in steps of several elements gets no fault, because the next loop handles the remainder.
STEPS = re.compile(r"; \w+ \+= \w+[,)]")


@dataclass(frozen=True)
class Fault:
    path: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"

    def place_in_order(self) -> bytes:
        return hashlib.sha256(f"{self.path} {self.before} {self.after}".encode()).digest()


@dataclass
class Kept:
    """Results for one state of the sources."""

    state: str
    verdicts: dict[str, str] = field(default_factory=dict)  # by the fault's text
    seconds: dict[str, float] = field(default_factory=dict)  # seconds of each test without a fault


def replaced(path: str, line: int, code: str, match: re.Match[str], by: str) -> Fault:
    after = code[: match.start()] + match.expand(by) + code[match.end() :]
    return Fault(path, line, code, after)


def faults_of_line(path: str, number: int, line: str) -> list[Fault]:
    if line.lstrip().startswith(("//", "#", '"')) or SKIPPED.search(line):
        return []
    code = line.split("//", 1)[0]
    quotients = list(QUOTIENT.finditer(code))
    faults = [replaced(path, number, code, one, r"\1 / \2") for one in quotients]
    is_loop = re.match(r"\s*(for|while)\b", code) is not None
    comparisons = ELSEWHERE if not is_loop else () if STEPS.search(code) else IN_LOOPS
    for pattern, replacement in (*FAULTS, *comparisons):
        for match in re.finditer(pattern, code):
            is_in_one = any(one.start() < match.start() < one.end() for one in quotients)
            if pattern != LESS_ONE or not is_in_one:
                faults.append(replaced(path, number, code, match, replacement))
    return faults


def all_faults(only: str) -> list[Fault]:
    faults = []
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            name = str(path.relative_to(ROOT))
            if only not in name or name in NOT_BUILT:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                faults += faults_of_line(name, number, line)
    return faults


def folder_of(path: str) -> str:
    return next(folder for folder in ASKED if path.startswith(folder + "/"))


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True)


def state_of_sources() -> str:
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *STATE)
    digest = hashlib.sha256()
    for name in sorted(listed.splitlines()):
        if (ROOT / name).is_file():
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return digest.hexdigest()[:16]


def read_kept(state: str) -> Kept:
    if KEPT.exists() and (kept := Kept(**json.loads(KEPT.read_text()))).state == state:
        return kept
    return Kept(state)


def write_kept(kept: Kept) -> None:
    part = KEPT.with_suffix(".part")
    part.write_text(json.dumps(asdict(kept), indent=1))
    part.replace(KEPT)


def target_of(test: str) -> str:
    return CONTRACTS.get(test, test if test.startswith("test_") else PACKAGE)


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


class Tree:
    """A copy of the sources with a build, with at most one fault at a time."""

    def __init__(self, number: int) -> None:
        self.folder = WORK / f"tree{number}"
        self.build = self.folder / "build/mutate"
        self.objects: dict[Path, bytes] = {}  # hashes of the objects without a fault

    def copy_sources(self) -> None:
        for name in git("ls-files", "--cached", "--others", "--exclude-standard").splitlines():
            source, target = ROOT / name, self.folder / name
            if not source.is_file():
                continue
            if target.is_file() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            # The copy is newer than objects that an interrupted run built with a fault.
            shutil.copy(source, target)
        if not (self.folder / ".deps").exists():
            (self.folder / ".deps").symlink_to(ROOT / ".deps")

    def configure(self) -> None:
        self.copy_sources()
        command = ["scripts/build", "--configure", "mutate"]
        subprocess.run(command, cwd=self.folder, check=True)

    def builds(self, tests: Iterable[str], jobs: int = 1) -> bool:
        targets = {target for test in tests for target in target_of(test).split()}
        if any(test[0] == "3" for test in tests):
            targets.add("maskwise_onednn")
        command = ["cmake", "--build", str(self.build), "--parallel", str(jobs)]
        command += ["--target", *sorted(targets)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def objects_since(self, since: float) -> dict[Path, bytes]:
        return {
            path: hashlib.sha256(path.read_bytes()).digest()
            for path in self.build.rglob("*.o")
            if path.stat().st_mtime >= since
        }

    def command(self, test: str) -> list[str]:
        if test in CONTRACTS:
            return ["ctest", "-R", f"^{test}$", "--no-tests=error"]
        if test.startswith("test_"):
            return [f"bin/{test}", "--gtest_fail_fast", "--gtest_brief=1"]
        pytest = [f"{ROOT}/.deps/python/bin/python", "-B", "-m", "pytest", "-qx"]
        return [*pytest, "-p", "no:cacheprovider", f"{self.folder}/python/tests/test_{test}.py"]

    def passes(self, test: str, seconds: float) -> bool:
        paths = f"{self.build}/python:{self.folder}/scripts"
        try:
            run = subprocess.run(
                self.command(test),
                cwd=self.build,
                capture_output=True,
                check=False,
                timeout=seconds,
                preexec_fn=limit_memory,
                env={**os.environ, "PYTHONPATH": paths},
            )
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0

    def is_as_before(self, test: str, since: float) -> bool:
        """Whether the fault left the program `test` unchanged."""
        program = self.build / "bin" / test
        return test.startswith("test_") and program.stat().st_mtime < since


class Run:
    """Tests faults in several trees until the time `end`."""

    def __init__(self, kept: Kept, end: float) -> None:
        self.kept, self.end, self.lock = kept, end, threading.Lock()
        processors = len(os.sched_getaffinity(0))
        self.trees = [Tree(number) for number in range(processors)]

    def prepare(self, tests: set[str]) -> bool:
        """Builds the tests and measures their times without a fault. False if a build fails."""
        for tree in self.trees:
            tree.configure()
            if not tree.builds(tests, jobs=len(self.trees)):
                print(f"scripts/mutate: {tree.folder} cannot be built")
                return False
            tree.objects = tree.objects_since(0)
        new = sorted(tests - self.kept.seconds.keys())
        shares = [new[i :: len(self.trees)] for i in range(len(self.trees))]
        with ThreadPoolExecutor(len(self.trees)) as pool:
            list(pool.map(self.time_tests, self.trees, shares))
        return True

    def time_tests(self, tree: Tree, tests: list[str]) -> None:
        """Times each test without a fault. Failing tests are not used for verdicts."""
        for test in tests:
            begin = time.monotonic()
            if not tree.passes(test, seconds=1800):
                print(f"scripts/mutate: left out: {test} fails without any fault", flush=True)
                continue
            with self.lock:
                self.kept.seconds[test] = round(time.monotonic() - begin, 2)
                write_kept(self.kept)

    def verdict(self, tree: Tree, path: str, since: float) -> str:
        asked: set[str] = set()
        for names in ASKED[folder_of(path)]:
            usable = self.kept.seconds.keys() & set(names.split()) - asked
            tests = sorted(usable, key=lambda test: self.kept.seconds[test])
            if not tree.builds(tests):
                return "does not compile"
            for test in tests:
                if not path.endswith(".py") and tree.is_as_before(test, since):
                    continue
                if not tree.passes(test, seconds=10 + SLOWER * self.kept.seconds[test]):
                    return f"noticed by {test}"
            asked |= set(tests)
        objects = tree.objects_since(since)
        if objects and objects.items() <= tree.objects.items():
            return "makes the same objects"
        return "changes plans only" if self.changes_plans(tree, path) else "survived"

    def changes_plans(self, tree: Tree, path: str) -> bool:
        if not path.startswith("src/plan/") or PLANS not in self.kept.seconds:
            return False
        seconds = 10 + SLOWER * self.kept.seconds[PLANS]
        return tree.builds([PLANS]) and not tree.passes(PLANS, seconds)

    def try_fault(self, tree: Tree, fault: Fault) -> None:
        path = tree.folder / fault.path
        original = path.read_text()
        lines = original.splitlines(keepends=True)
        lines[fault.line - 1] = fault.after + "\n"
        path.write_text("".join(lines))
        begin = time.monotonic()
        try:
            verdict = self.verdict(tree, fault.path, path.stat().st_mtime)
        finally:
            path.write_text(original)
        with self.lock:
            self.kept.verdicts[str(fault)] = verdict
            write_kept(self.kept)
            print(f"{time.monotonic() - begin:6.1f} s  {fault}\n          {verdict}", flush=True)

    def work(self, tree: Tree, faults: list[Fault]) -> None:
        while time.monotonic() < self.end:
            with self.lock:
                if not faults:
                    return
                fault = faults.pop()
            self.try_fault(tree, fault)

    def try_all(self, faults: list[Fault]) -> None:
        with ThreadPoolExecutor(len(self.trees)) as pool:
            for done in [pool.submit(self.work, tree, faults) for tree in self.trees]:
                done.result()


def report(verdicts: dict[str, str]) -> int:
    """Prints a line per folder, and the total. Returns the exit status."""
    counts: Counter[tuple[str, str]] = Counter()
    for fault, verdict in verdicts.items():
        counts[folder_of(fault), verdict.split()[0]] += 1
    for folder in sorted({folder for folder, _ in counts}):
        seen, missed = counts[folder, "noticed"], counts[folder, "survived"]
        moved = counts[folder, "changes"]
        print(f"{folder:<25} {seen} of {seen + missed} noticed", end="")
        print(f", {moved} change plans only" if moved else "")
    noticed = sum(count for (_, word), count in counts.items() if word == "noticed")
    tried = noticed + sum(count for (_, word), count in counts.items() if word == "survived")
    percent = 100.0 * noticed / max(tried, 1)
    print(f"scripts/mutate: {noticed} of {tried} noticed ({percent:.0f} %)")
    return 0 if percent >= LEAST_PERCENT else 1


def use_ccache() -> None:
    """Requires ccache, so that removing a fault recompiles nothing."""
    if shutil.which("ccache") is None:
        sys.exit("scripts/mutate: no ccache: run scripts/setup --check")
    os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no fault after this time"
    )
    parser.add_argument("--only", default="", help="only files whose path contains this text")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    end = time.monotonic() + arguments.seconds
    use_ccache()
    WORK.mkdir(parents=True, exist_ok=True)
    kept = read_kept(state_of_sources())
    run = Run(kept, end)
    faults = all_faults(arguments.only)
    faults.sort(key=Fault.place_in_order)
    faults = [fault for fault in faults if str(fault) not in kept.verdicts][: arguments.count]
    folders = {folder_of(fault.path) for fault in faults}
    tests = {name for each in folders for names in ASKED[each] for name in names.split()}
    if "src/plan" in folders:
        tests.add(PLANS)
    if not run.prepare(tests):
        return 1
    run.try_all(faults[::-1])
    return report(kept.verdicts)


if __name__ == "__main__":
    sys.exit(main())
