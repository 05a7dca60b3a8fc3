"""A fixed number of models drawn at random, alone and with Maskwise: tests/fuzz/fuzz_models.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/fuzz"))
from fuzz_models import run_models, summarize


@pytest.mark.parametrize(
    ("host", "count", "kinds", "share"),
    [("onnxruntime", 400, ("attention", "rows"), 0.4), ("openvino", 25, ("Select-1",), 0.4)],
)
def test_models_run_as_without_maskwise(
    host: str, count: int, kinds: tuple[str, ...], share: float
) -> None:
    found = list(run_models(host, 0, count))
    assert not [one for one in found if one["difference"]]
    assert len(found) == count
    ran = sum(one["verdict"] == "ran" for one in found)
    claimed = sum(any(kind in kinds for kind in one["claims"]) for one in found)
    assert ran > 0.5 * count, summarize(found)
    assert claimed > share * count, summarize(found)
    if host == "onnxruntime":
        assert sum("attention" in one["claims"] for one in found) > 0.08 * count, summarize(found)
