"""Every run draws the same examples; a longer run draws more: --hypothesis-profile=long."""

from __future__ import annotations

import hypothesis

# No deadline: a busy machine is no fault of the code.
common = {"deadline": None, "database": None}
hypothesis.settings.register_profile("ci", max_examples=400, derandomize=True, **common)
hypothesis.settings.register_profile("long", max_examples=20_000, **common)
hypothesis.settings.load_profile("ci")
