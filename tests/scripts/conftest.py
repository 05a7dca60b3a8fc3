"""Lets the tests import the scripts, which stand alone and are no package."""

import sys
from pathlib import Path

import hypothesis

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

# No deadline: a busy machine is no fault of the code.
hypothesis.settings.register_profile("scripts", deadline=None, max_examples=50)
hypothesis.settings.load_profile("scripts")
