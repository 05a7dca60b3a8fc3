"""The graphs in models/ match the output of scripts/export_models.py with the pinned versions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import model_text
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_where import op

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(__file__).parent / "models"
EXPORTERS = ROOT / ".deps/exporters/bin/python"


@pytest.mark.skipif(not EXPORTERS.exists(), reason="scripts/setup --exporters was not run")
def test_the_texts_are_what_the_exporters_write(tmp_path: Path) -> None:
    command = [EXPORTERS, "-B", ROOT / "scripts/export_models.py", "--folder", tmp_path]
    other_order = {**os.environ, "PYTHONHASHSEED": "0"}  # changes the order of Python's sets
    subprocess.run(command, check=True, capture_output=True, env=other_order)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(texts) == {path.name for path in MODELS.iterdir()}
    for name, text in texts.items():
        assert (MODELS / name).read_text() == text, name


def test_a_text_keeps_all_but_weights() -> None:
    weights = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    tensors = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(np.full(30, 0.5, np.float32), "filled"),
        numpy_helper.from_array(np.array([-np.inf, -0.0], np.float32), "short"),
        numpy_helper.from_array(np.arange(100), "integers"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", None, 40])]
    outputs = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [None, "m", 30])]
    nodes = [
        op("MatMul", "x", "w", "m", name="first"),
        op("LayerNormalization", "m", "filled", "o", axis=-1, epsilon=1e-5),
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    text = model_text.text_of(model, "a test")
    again = model_text.model_of(text)
    assert again.graph.node == model.graph.node
    assert [*again.graph.input, *again.graph.output] == [*inputs, *outputs]
    assert again.graph.initializer[1:] == model.graph.initializer[1:]
    drawn = numpy_helper.to_array(again.graph.initializer[0])
    assert drawn.shape == weights.shape
    assert drawn.std() == pytest.approx(1, rel=0.1)
    assert model_text.text_of(again, "a test") == text


def test_a_graph_attribute_cannot_be_written_as_text() -> None:
    body = helper.make_graph([], "body", [], [])
    node = op("If", "c", "o", then_branch=body, else_branch=body)
    with pytest.raises(ValueError, match="branch of type 5 cannot be written as text"):
        model_text.text_of(helper.make_model(helper.make_graph([node], "g", [], [])), "a test")
