"""Every run draws the same examples; a longer run draws more: --hypothesis-profile=long."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis

# scripts/setup --torch and --exporters install PyTorch and transformers separately. They come after
# all packages of this environment.
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
for apart in ("torch", "exporters"):
    place = Path(__file__).resolve().parents[2] / ".deps" / apart / "lib" / VERSION
    sys.path.append(str(place / "site-packages"))

# No deadline: a busy machine is no fault of the code.
common = {"deadline": None, "database": None}
hypothesis.settings.register_profile("ci", max_examples=400, derandomize=True, **common)
hypothesis.settings.register_profile("long", max_examples=20_000, **common)
hypothesis.settings.load_profile("ci")
