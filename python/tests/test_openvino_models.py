"""Language models from PyTorch's exporters: logits equal OpenVINO's.

By default Maskwise runs the models' attention, except in T5 and DeBERTa, which have a bias per
head. With `force`, Maskwise also runs every Select and every Softmax with a mask.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_text
import numpy as np
import openvino as ov
import pytest
from select_models import accelerate, kinds_of_run

MODELS = sorted((Path(__file__).parent / "models").glob("*.json"))
VOCABULARY = 101
LAYERS = 2


def feeds_of(compiled: Any, batch: int, sequence: int) -> dict[str, Any]:
    random = np.random.default_rng(sequence)
    feeds: dict[str, Any] = {}
    for one in compiled.inputs:
        name = one.any_name
        sizes = {0: batch, 1: sequence}
        shape = [
            sizes.get(place, 16) if extent.is_dynamic else extent.get_length()
            for place, extent in enumerate(one.partial_shape)
        ]
        if "mask" in name:
            feeds[name] = (np.arange(shape[1]) <= shape[1] // 2) * np.ones(shape, np.int64)
        elif one.element_type == ov.Type.i64:
            feeds[name] = random.integers(0, VOCABULARY, shape)
        else:
            feeds[name] = random.standard_normal(shape).astype(np.float32)
    return feeds


def compile_model(model: ov.Model) -> Any:
    return ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_logits(path: Path) -> None:
    model = ov.Core().read_model(model_text.read(path).SerializeToString(), b"")
    stock = compile_model(model)
    accelerated, forced = (compile_model(accelerate(model, force=force)) for force in (False, True))
    wanted = 0 if path.stem.startswith(("deberta", "t5")) else LAYERS
    assert kinds_of_run(accelerated).count("Reference") == wanted
    assert kinds_of_run(forced).count("Reference") > wanted
    for batch, sequence in ((2, 12), (1, 1), (3, 31)):
        feeds = feeds_of(stock, batch, sequence)
        expected = stock(feeds)["logits"]
        assert np.isfinite(expected).all() and np.ptp(expected) > 0
        for compiled in (accelerated, forced):
            np.testing.assert_allclose(compiled(feeds)["logits"], expected, rtol=0, atol=1e-5)


def test_all_12_models_are_found() -> None:
    assert len(MODELS) == 12
