"""Models in which a claim would trigger a bug in ONNX Runtime's optimizers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import maskwise.onnxruntime
import numpy as np
import pytest
from fused_models import F16, F32, Feeds, Node, initializers
from onnx import helper
from onnx_where import model_of, op, value
from where_models import options, stock_session

DISABLED = "optimization.disable_specified_optimizers"
LOADS = """
import sys
import maskwise.onnxruntime, onnxruntime
options = onnxruntime.SessionOptions()
options.add_session_config_entry(*sys.argv[2:])
maskwise.onnxruntime.session(sys.argv[1], options)
"""


def transposed(perm: list[int]) -> Node:
    return op("Transpose", "a", "t", perm=perm)


# After a Transpose of the outermost dimension, MatmulTransposeFusion swaps Transpose and Cast
# without reporting the change.
BY_CAST = [op("Cast", "t", "wide", to=F32), op("MatMul", "wide", "b", "o")]
# In this attention, MatmulTransposeFusion reports its change.
ATTENTION = [
    op("Transpose", "k", "kt", perm=[0, 2, 1]),
    op("MatMul", "q", "kt", "scores"),
    op("Where", "c", "scores", "fill", "kept"),
    op("Softmax", "kept", "weights", axis=-1),
    op("MatMul", "weights", "v", "result"),
]
# `half` has two consumers, so its Cast stays. With one consumer, the optimizers would run again.
WHERE = [op("Where", "c", "x", "half", "result")]
IN_F16 = [op("MatMul", "t", "b", "o"), op("Mul", "x", "half", "more")]
# Another optimizer turns the division by `half` into a scale of the MatMul.
BY_NUMBER = [op("Div", "t", "half", "n"), op("MatMul", "n", "b", "o")]


def in_a_branch(nodes: list[Node]) -> list[Node]:
    inner = helper.make_graph(nodes, "branch", [], [value("o", F32, None)])
    return [op("If", "yes", "o", then_branch=inner, else_branch=inner)]


def fed(
    nodes: list[Node], element: int, claimed: list[Node], factor: tuple[int, ...] = (9, 4)
) -> tuple[bytes, Feeds]:
    random = np.random.default_rng(8)
    shapes = {name: (2, 40, 16) for name in "qkv"} | {"x": (3, 40), "b": factor}
    dtype = helper.tensor_dtype_to_np_dtype(element)
    feeds: Feeds = {name: random.random(shape).astype(dtype) for name, shape in shapes.items()}
    feeds |= {"a": random.random((5, 6, 9)).astype("e")}
    feeds |= {"c": random.random((40,)) < 0.5, "yes": np.array(True)}
    constants = {"fill": np.array(-1e9, "f"), "half": np.array(0.5, "e")}
    inputs = [
        value(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in feeds.items()
    ]
    produced = [name for one in nodes for name in one.output]
    read = [name for one in nodes for name in one.input]
    outputs = [value(name, element, None) for name in [*produced, "result"] if name not in read]
    return model_of([*nodes, *claimed], inputs, outputs, initializers(constants), 17), feeds


FORMS = {
    "f16": (IN_F16, F16, WHERE),
    "number": (BY_NUMBER, F16, WHERE),
    "cast": (BY_CAST, F32, ATTENTION),
}
MODELS = {name: fed([transposed([1, 0, 2]), *form[0]], *form[1:]) for name, form in FORMS.items()}
MODELS["branch"] = fed(in_a_branch([transposed([1, 0, 2]), *BY_CAST]), F32, ATTENTION)


def assert_runs(model: bytes, feeds: Feeds, folder: Path, claims: int, disabled: str = "") -> None:
    path = folder / "model.onnx"
    path.write_bytes(model)
    # In a separate process, because ONNX Runtime may crash.
    command = [sys.executable, "-B", "-c", LOADS, str(path), DISABLED, disabled]
    assert subprocess.run(command, check=False).returncode == 0
    stock = stock_session(model)
    session_options = options()
    session_options.add_session_config_entry(DISABLED, disabled)
    session = maskwise.onnxruntime.session(model, session_options)
    groups = [g.ep_name for g in session.get_provider_graph_assignment_info()]
    assert sum(name != "CPUExecutionProvider" for name in groups) == claims, groups
    for got, wanted in zip(session.run(None, feeds), stock.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", MODELS)
def test_no_claim_if_a_fusion_does_not_report_its_change(form: str, tmp_path: Path) -> None:
    assert_runs(*MODELS[form], tmp_path, claims=0)


@pytest.mark.parametrize("form", MODELS)
def test_the_same_models_without_matmul_transpose_fusion(form: str, tmp_path: Path) -> None:
    assert_runs(*MODELS[form], tmp_path, claims=1, disabled="MatmulTransposeFusion")


FUSED_OR_LEFT = [
    ([0, 1, 2], (9, 4)),
    ([0, 2, 1], (6, 4)),
    ([2, 0, 1], (6, 4)),
    ([1, 0, 2], (6, 9, 4)),
]


@pytest.mark.parametrize(("perm", "factor"), FUSED_OR_LEFT)
@pytest.mark.parametrize("form", FORMS)
def test_transposes_without_the_bug(
    form: str, perm: list[int], factor: tuple[int, ...], tmp_path: Path
) -> None:
    nodes, element, claimed = FORMS[form]
    assert_runs(*fed([transposed(perm), *nodes], element, claimed, factor), tmp_path, claims=1)
