"""Runs whole batches, with oneDNN alone and with the plugin.

Every case passes, unless the library lacks an operator or a type. Each version of oneDNN has lower
bounds for the numbers of cases that pass and that Maskwise runs.
"""

from __future__ import annotations

import os
import re
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client_process import ROOT, SETUP, main, needs_plugin, report

Test = dict[str, Any]
CASES_OF_ONEDNN = 19
# 16-bit cases that also run in f32 if the library does not run bf16, as in oneDNN's driver.
ALSO_IN_F32 = {
    "codegemma-bf16-f32",
    "gemma2-bf16-f32",
    "gqa-plain-bottom-right-implicit-causal-mask-f16-f32",
    "sdpa-plain-bottom-right-implicit-causal-mask-f16-f32",
}


@dataclass(frozen=True)
class Floor:
    """Lower bounds for oneDNN 3.`since` and newer.

    `passed` bounds the number of cases that pass. `claimed` bounds the number of those cases with a
    partition that Maskwise runs. The first number of a pair always counts. The second number counts
    only if the library runs bf16.
    """

    since: int
    passed: tuple[int, int]
    claimed: tuple[int, int] = (0, 0)


NEIGHBOURS = [Floor(8, (35, 24)), Floor(7, (33, 22)), Floor(0, (26, 20))]
ATTENTION = [
    Floor(13, (17, 20), (17, 15)),
    Floor(8, (17, 18), (17, 12)),
    Floor(7, (5, 5), (3, 3)),
    Floor(0, (3, 3), (3, 3)),
]
OWN_CASES = [Floor(8, (8, 8), (6, 5)), Floor(7, (4, 0), (1, 0)), Floor(0, (2, 0), (2, 0))]
MERGED = [Floor(7, (7, 3), (7, 3))]


def count_of(pair: tuple[int, int]) -> int:
    return pair[0] + (pair[1] if "bf16" in SETUP.types else 0)


def is_claimed(test: Test) -> bool:
    return any(partition["owner"] == "maskwise" for partition in test["partitions"])


def is_lacking(test: Test) -> bool:
    """Whether the library lacks an operator, or kernels for a type of the case."""
    match = re.search(r"needs oneDNN 3\.|this machine has no (\w+)$", test["reason"])
    return match is not None and match[1] not in SETUP.types


def is_older(test: Test) -> bool:
    """Whether a oneDNN older than 3.5 caused the failure: it lacks Select or bf16 kernels."""
    thrown = "a C++ exception" in test["reason"] and "bf16" not in SETUP.types
    return SETUP.minor < 5 and (thrown or test["state"] == "UNIMPLEMENTED")


class Expectations(unittest.TestCase):
    def demand_right(self, tests: list[Test]) -> None:
        for test in tests:
            is_right = test["state"] == "PASSED"
            is_excused = (test["state"] == "SKIPPED" and is_lacking(test)) or is_older(test)
            self.assertTrue(is_right or is_excused, test)

    def demand(self, tests: list[Test], floors: list[Floor], plugin: bool) -> None:
        self.demand_right(tests)
        floor = next(floor for floor in floors if SETUP.minor >= floor.since)
        passed = [test for test in tests if test["state"] == "PASSED"]
        claimed = [test for test in passed if is_claimed(test)]
        if plugin or SETUP.minor >= 5:
            self.assertGreaterEqual(len(passed), count_of(floor.passed))
        self.assertGreaterEqual(len(claimed), count_of(floor.claimed) if plugin else 0)


class Attention(Expectations):
    def test_cases_pass_with_onednn_alone(self) -> None:
        self.demand(report("--batch=mha_ci"), ATTENTION, plugin=False)

    def test_cases_pass_with_the_plugin(self) -> None:
        needs_plugin(self)
        self.demand(report("--batch=mha_ci", plugin=True), ATTENTION, plugin=True)

    def test_cases_of_onednns_driver_pass(self) -> None:
        if not (SETUP.cases and Path(SETUP.cases).is_dir()):
            missing = os.path.relpath(SETUP.cases, ROOT) if SETUP.cases else "--cases"
            self.skipTest(f"{CASES_OF_ONEDNN} of oneDNN's own cases not run: no {missing}")
        files = sorted(Path(SETUP.cases).rglob("*.json"))
        self.assertEqual(len(files), CASES_OF_ONEDNN)
        arguments = ["--expected-n-partitions=0"]
        for file in files:
            large = "hf-sdpa-bwd" in file.name
            arguments += [f"--mb={8 if large else 0}", f"--case={file}"]
            if file.stem in ALSO_IN_F32 and "bf16" not in SETUP.types:
                arguments += ["--dt=f32", f"--case={file}", "--dt="]
        for plugin in (False, True) if SETUP.preload else (False,):
            self.demand(report(*arguments, plugin=plugin), OWN_CASES, plugin)


class Batches(Expectations):
    def test_operators_next_to_select_pass(self) -> None:
        self.demand(report("--batch=op_ci"), NEIGHBOURS, plugin=False)

    def test_merged_chains_pass(self) -> None:
        needs_plugin(self)
        if SETUP.minor < 7:
            self.skipTest("oneDNN before 3.7 has no GenIndex")
        self.demand(report("--batch=merge_ci", plugin=True), MERGED, plugin=True)

    def test_selects_pass_with_onednn_alone(self) -> None:
        tests = report("--isolate", "--batch=select_ci")
        # oneDNN 3.7 throws if both sources and cond's last dimension are broadcast.
        if SETUP.minor == 7:
            tests = [test for test in tests if test["state"] != "ABORTED"]
        self.demand_right(tests)

    def test_selects_pass_with_the_plugin(self) -> None:
        needs_plugin(self)
        batches = ["--batch=select_ci", "--batch=select_invalid"]
        tests = report("--owner=maskwise", *batches, plugin=True)
        self.assertEqual([test for test in tests if test["state"] != "PASSED"], [])
        self.assertGreater(len(tests), 350)


if __name__ == "__main__":
    main()
