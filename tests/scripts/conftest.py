"""Adds the folders of the programs under test to the import path."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "benchmarks/field",
    "benchmarks/suites",
    "tests/contract/overhead",
    "tests/contract/transcript",
    "tests/plain",
)
for folder in (*FOLDERS, "tests/guard", "tests/support", "scripts"):  # the last is searched first
    sys.path.insert(0, str(ROOT / folder))


@pytest.fixture(scope="session")
def ask_numpy() -> Callable[..., Any]:
    """Runs code with the suites' modules and NumPy. Returns the JSON that the code prints."""

    def ask(code: str, *arguments: str, folder: str = "") -> Any:  # noqa: ANN401
        python = ROOT / ".deps/python/bin/python"
        assert python.exists(), "scripts/setup --python installs NumPy"
        path = os.pathsep.join([str(ROOT / "benchmarks/suites"), folder])
        process = subprocess.run(
            [str(python), "-B", "-c", code, *arguments],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return ask
