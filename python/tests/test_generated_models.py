"""Runs tests/fuzz/fuzz_models.py on a fixed number of models, and tests its comparisons."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from generated_models import Case
from model_builder import Builder
from model_values import BOOL, F16, F32, Evaluator, Pair, soft_max
from onnx_where import model_of, op, value

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/fuzz"))
from fuzz_models import OnnxRuntime, difference, fault_of, run_models, steady, summarize


@pytest.mark.parametrize(
    ("host", "count", "kinds", "share"),
    [
        ("onnxruntime", 400, ("attention", "rows"), 0.4),
        ("openvino", 25, ("Select-1",), 0.3),
        ("openvino_attention", 50, ("attention",), 0.9),
    ],
)
def test_models_run_as_without_maskwise(
    host: str, count: int, kinds: tuple[str, ...], share: float
) -> None:
    results = list(run_models(host, 0, count))
    assert not [one for one in results if one["difference"]]
    assert len(results) == count
    ran = sum(one["verdict"] == "ran" for one in results)
    claimed = sum(any(kind in kinds for kind in one["claims"]) for one in results)
    assert ran > 0.5 * count, summarize(results)
    assert claimed > share * count, summarize(results)
    if host == "onnxruntime":
        assert sum("attention" in one["claims"] for one in results) > 0.08 * count, summarize(
            results
        )


def test_rows_of_a_sum_of_rounded_values() -> None:
    """If the last bit of a tanh differs, the sum's last bit (2048 times larger) may differ, too.
    Weights may differ only as much as the sum's last bit explains."""
    x = np.random.default_rng(5).standard_normal((400, 40)).astype("f")
    bias = np.array(-2000.0, "f")
    nodes = [
        op("Tanh", "x", "tangent"),
        op("Add", "tangent", "bias", "sum"),
        op("Softmax", "sum", "weights"),
        op("Add", "x", "bias", "exact"),
    ]
    values = {"x": (x.astype(float),) * 2, "bias": (bias.astype(float),) * 2}
    Evaluator(18, F32, np.random.default_rng(6)).run(nodes, values)
    sums = np.tanh(x) + bias
    shaken = np.nextafter(np.tanh(x), np.float32(1)) + bias
    assert (sums != shaken).any()
    weights, pair = soft_max(sums), values["weights"]
    assert difference(soft_max(shaken), weights, pair, F32) is None
    assert difference(weights * np.float32(1.1), weights, pair, F32)
    assert values["exact"][0] is values["exact"][1]


def test_roundings_of_two_weights_that_cancel_in_one_draw() -> None:
    """The last bits of two large scores decide the weights. Random noise may change both scores
    alike."""
    nodes = [op("MatMul", "x", "keys", "scores"), op("Softmax", "scores", "weights", axis=-1)]
    nodes += [op("MatMul", "weights", "numbers", "y")]
    feeds = {"x": np.array([[4000.25]], "f"), "keys": np.array([[1, 1]], "f")}
    feeds["numbers"] = np.array([[400], [-500]], "f")
    doubled = {name: (array.astype(float),) * 2 for name, array in feeds.items()}

    def pair_of(seed: int) -> Pair:
        values = dict(doubled)
        Evaluator(18, F32, np.random.default_rng(seed)).run(nodes, values)
        return values["y"]

    pairs = [pair_of(seed) for seed in range(10)]
    pair = min(pairs, key=lambda one: abs(one[0] - one[1]).max())
    inputs = [value(name, F32, array.shape) for name, array in feeds.items()]
    model = model_of(nodes, inputs, [value("y", F32, (1, 1))], opset=18)
    case = Case(model, F32, feeds, {"y": pair})
    scores = np.array([[4000.25, np.nextafter(np.float32(4000.25), np.float32(5000))]], "f")
    got, wanted = (soft_max(one) @ feeds["numbers"] for one in (scores, scores[:, :1].repeat(2, 1)))
    assert difference(got, wanted, pair, F32)
    assert fault_of([got], [wanted], case) is None
    assert fault_of([wanted + 30], [wanted], case)
    exact = Case(model, F32, feeds, {"y": (pair[0],) * 2})
    assert fault_of([got], [wanted], exact)


def test_outputs_that_openvino_does_not_repeat_are_not_compared() -> None:
    right, wrong = np.ones((2, 3), "e"), np.zeros((2, 3), "e")
    assert steady("refused") == "refused"
    case = Case(b"", F16, {}, {"y": (right.astype(float),) * 2})
    wanted = steady([wrong, right])
    assert fault_of([wrong, right], wanted, case) is None
    assert fault_of([right, wrong], wanted, case)
    assert fault_of([wrong, right], steady([right, right]), case)


def test_nothing_is_known_after_a_node_that_numpy_cannot_run() -> None:
    """ONNX Runtime may run a node that NumPy refuses. For example, axis -2**63 counts as 0."""
    builder = Builder(7)
    builder.twists = 1
    x = builder.add_value(np.ones((2, 3), "f"), F32, False)
    first = next(
        one
        for one in (builder.emit("Softmax", x, axis=0) for _ in range(100))
        if one.name in builder.unknown
    )
    inner = builder.inside([], lambda: [builder.emit("Neg", first)])
    cond = builder.add_value(np.array(True), BOOL, False)
    chosen = builder.emit("If", cond, then_branch=inner, else_branch=inner)
    assert {x.name, cond.name, chosen.name} & builder.unknown == {chosen.name}
    got, wanted = np.ones(3), np.zeros(3)
    assert difference(got, wanted, None, F32) is None
    assert difference(got[:2], wanted, None, F32)
    assert difference(got, wanted, (wanted, wanted), F32)


def test_a_number_near_the_largest_f16_may_be_infinite() -> None:
    exact, shaken = np.array([[60000.0, 1.0]]), np.array([[59950.0, 1.0]])
    got, wanted = (np.array([[one, 1]], "e") for one in (np.inf, 64000))
    assert difference(got, wanted, (exact, shaken), F16) is None
    assert difference(got, wanted - np.float16(20000), (exact, shaken), F16)
    assert difference(got, np.nan_to_num(got), (exact, exact), F16)
    # A possibly infinite row does not change the bounds of other rows.
    exact, shaken = np.array([[1e9, 1.0], [1.0, 1.0]]), np.array([[2e9, 1.0], [1.0, 1.0]])
    wanted = np.array([[np.inf, 1], [1, 1]], "e")
    got = np.array([[64000, 2], [1, 1]], "e")
    assert difference(got, wanted, (exact, shaken), F16) is None
    assert difference(got[::-1], wanted[::-1], (exact, shaken), F16)


def test_a_model_with_wrong_shapes_is_excused() -> None:
    """The model declares y as a scalar, but y has a dimension. If a provider changes the graph,
    ONNX Runtime infers a scalar for Softmax and refuses the model."""
    nodes = [op("Where", "c", "x", "y", "kept", name="kept")]
    nodes += [op("Softmax", "kept", "weights", axis=-1)]
    nodes += [op("Mul", "rows", "x", "scaled")]
    nodes += [op("Softmax", "scaled", "others", axis=-1)]
    declared = [value("c", BOOL, ()), value("x", F32, ()), value("y", F32, ())]
    inner_values = [value("kept", F32, ("n",))]
    declared += [value("rows", F32, (2, 260))]
    outputs = [value(name, F32, None) for name in ("weights", "others")]
    model = model_of(nodes, declared, outputs, opset=21, inner_values=inner_values)
    feeds = {"c": np.array(True), "x": np.array(1, "f"), "y": np.ones(1, "f")}
    feeds["rows"] = np.ones((2, 260), "f")
    case = Case(model, F32, feeds, {"weights": None, "others": None})
    assert OnnxRuntime(False).check(case, 0) == {
        "verdict": "excused (wrong shapes, inferred again)",
        "difference": None,
        "claims": ["rows", "Where-16"],
    }
