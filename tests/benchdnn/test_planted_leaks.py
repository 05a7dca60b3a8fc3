"""Tests that scripts/soak notices planted leaks and failures of a client within 15 seconds.

Started by ctest: test_planted_leaks.py --lane LANE --faulty FILE --preload LIBS
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import unittest_report

SOAK = Path(__file__).resolve().parents[2] / "scripts/soak.py"
SECONDS = "15"
SETUP = argparse.Namespace()


def soak(fault: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SOAK), SECONDS, "--lane", SETUP.lane]
    command += ["--client", SETUP.faulty, "--plugin", SETUP.preload]
    environment = dict(os.environ, MASKWISE_BENCH_FAULT=fault)
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=600, check=False
    )


class Soak(unittest.TestCase):
    def test_a_leak_is_noticed(self) -> None:
        done = soak("leak")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"resident_bytes grow by [\d,.]+ a case", done.stderr)

    def test_failing_cases_are_noticed(self) -> None:
        done = soak("execute_fails")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"soak: \d+ FAILED", done.stderr)

    def test_soak_passes_without_a_fault(self) -> None:
        done = soak("none")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("lane", "faulty", "preload"):
        parser.add_argument(f"--{name}", required=True)
    parser.parse_args(namespace=SETUP)
    unittest_report.main(argv=sys.argv[:1])
