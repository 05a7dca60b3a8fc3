"""Lets the tests import what they test: programs, which stand alone and are no package."""

import sys
from pathlib import Path

import hypothesis

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks/suites", "tests/contract/overhead", "tests/contract/transcript")
for folder in (*FOLDERS, "tests/guard", "tests/support", "scripts"):  # the last goes first
    sys.path.insert(0, str(ROOT / folder))

# No deadline: a busy machine is no fault of the code.
hypothesis.settings.register_profile("scripts", deadline=None, max_examples=50)
hypothesis.settings.load_profile("scripts")
