"""Runs NumPy's own tests of where with maskwise.where. NumPy's wheel has the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(np.__file__).parent / "_core/tests/test_multiarray.py"
FOLDER = Path(__file__).parent


def run_numpy_tests(plugin: str) -> str:
    """pytest's output. `plugin` is a module of this folder."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]
    environment = {**os.environ, "PYTHONPATH": f"{FOLDER}:{os.environ['PYTHONPATH']}"}
    ran = subprocess.run(
        [*command, "--rootdir", str(TESTS.parent), f"{TESTS}::TestWhere"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS.parent,
    )
    return ran.stdout + ran.stderr


def test_numpys_tests_pass() -> None:
    output = run_numpy_tests("replace_where")
    assert " passed" in output and " failed" not in output and " error" not in output, output
    assert "calls of maskwise.where: 0" not in output
    assert int(output.split("calls of maskwise.where: ")[1].split()[0]) > 100, output


def test_numpys_tests_detect_a_wrong_where() -> None:
    assert " failed" in run_numpy_tests("replace_where_by_a_wrong_one")
