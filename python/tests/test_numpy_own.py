"""NumPy's own tests of where, from its wheel, with np.where replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(np.__file__).parent / "_core/tests/test_multiarray.py"
FOLDER = Path(__file__).parent


def run_theirs(plugin: str) -> str:
    """pytest's output; the plugin is a module of this folder."""
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


def test_they_pass() -> None:
    said = run_theirs("replace_where")
    assert " passed" in said and " failed" not in said and " error" not in said, said
    assert "calls of maskwise.where: 0" not in said
    assert int(said.split("calls of maskwise.where: ")[1].split()[0]) > 100, said


def test_they_notice_a_wrong_where() -> None:
    assert " failed" in run_theirs("replace_where_by_a_wrong_one")
