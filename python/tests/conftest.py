"""Each run draws the same examples. --hypothesis-profile=long draws more examples, at random."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import hypothesis

# scripts/setup --torch and --exporters install PyTorch and transformers into separate folders. The
# running environment's packages come first on the path. An environment with transformers needs
# neither folder.
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
for name in () if find_spec("transformers") else ("torch", "exporters"):
    folder = Path(__file__).resolve().parents[2] / ".deps" / name / "lib" / VERSION
    sys.path.append(str(folder / "site-packages"))

# No deadline, because the machine may be busy.
common = {"deadline": None, "database": None}
hypothesis.settings.register_profile("ci", max_examples=400, derandomize=True, **common)
hypothesis.settings.register_profile("long", max_examples=20_000, **common)
hypothesis.settings.load_profile("ci")
