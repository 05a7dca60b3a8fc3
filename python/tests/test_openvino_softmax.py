"""Maskwise runs a Softmax of scaled and masked scores as one operation in OpenVINO."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
import pytest
from arrays import Array
from openvino import opset13 as ops
from select_models import accelerate, compile_model, run

SHAPE = (2, 4, 96, 96)  # 288 KiB
OPERATORS = {"multiply": np.multiply, "divide": np.divide}


def chain_model(
    scaling: str = "multiply",
    *,
    cond_keeps: bool = True,
    fill: float = -np.inf,
    cond: tuple[int, ...] = (96, 96),
    shape: tuple[int, ...] = SHAPE,
    axis: int = -1,
    factor_first: bool = False,
) -> ov.Model:
    x = ops.parameter(shape, ov.Type.f32, name="x")
    mask = ops.parameter(cond, ov.Type.boolean, name="mask")
    scores, number = x, ops.constant(np.float32(fill))
    if scaling != "none":
        operands = [x, ops.constant(np.float32(8))]
        scores = getattr(ops, scaling)(*(operands[::-1] if factor_first else operands))
    sides = (scores, number) if cond_keeps else (number, scores)
    weights = ops.softmax(ops.select(mask, *sides), axis, name="weights")
    return ov.Model([weights], [mask, x])


def chains(model: ov.Model) -> list[str]:
    """Returns Maskwise's operations in the compiled model, with their numbers of inputs."""
    nodes = compile_model(model).get_runtime_model().get_ordered_ops()
    by_maskwise = [
        node for node in nodes if node.get_rt_info()["layerType"].astype(str) == "Reference"
    ]
    return [f"{node.get_friendly_name()} of {node.get_input_size()}" for node in by_maskwise]


def test_the_model_is_unchanged() -> None:
    model = chain_model()
    accelerated = accelerate(model)
    assert (chains(model), chains(accelerated)) == ([], ["weights of 4"])
    kinds = [node.get_type_name() for node in model.get_ordered_ops()]
    assert kinds.count("Softmax") == kinds.count("Select") == 1 and "Fused" not in kinds


def port(number: int, shape: str, precision: str = "FP32") -> str:
    dims = "".join(f"<dim>{extent}</dim>" for extent in shape.split(",") if extent)
    return f'<port id="{number}" precision="{precision}">{dims}</port>'


def layer(number: int, kind: str, version: str, data: str, ports: str) -> str:
    attributes = f'id="{number}" name="{kind}{number}" type="{kind}" version="{version}"'
    return f"<layer {attributes}><data {data}/>{ports}</layer>"


def test_scores_that_are_smaller_than_the_mask() -> None:
    """The mask has more rows than the scores. evaluate() does not infer shapes first."""
    sizes = {0: ("?,8", "-1,8", "f32"), 1: ("?,8", "-1,8", "boolean"), 2: ("", "", "f32")}
    precisions = {0: "FP32", 1: "BOOL", 2: "FP32"}
    layers = [
        layer(
            number,
            "Parameter",
            "opset1",
            f'shape="{shape}" element_type="{kind}"',
            f"<output>{port(0, dims, precisions[number])}</output>",
        )
        for number, (shape, dims, kind) in sizes.items()
    ]
    inputs = "".join(port(number, sizes[number][1], precisions[number]) for number in sizes)
    data = 'attention="false" operators="select_kept" operands="0, 1" '
    data += 'inf_as_zero="false" nan_as_zero="false" scales_by_depth="false"'
    ports = f"<input>{inputs}</input><output>{port(3, '-1,8')}</output>"
    layers.append(layer(3, "Fused", "maskwise", data, ports))
    result = f"<input>{port(0, '-1,8')}</input>"
    layers.append(layer(4, "Result", "opset1", "", result))
    edge = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'
    edges = "".join(
        edge.format(*each) for each in [(0, 0, 3, 0), (1, 0, 3, 1), (2, 0, 3, 2), (3, 3, 4, 0)]
    )
    text = (
        f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{edges}</edges></net>'
    )
    core = ov.Core()
    core.add_extension(maskwise.openvino.library())
    (node,) = [
        each
        for each in core.read_model(text.encode(), b"").get_ops()
        if each.get_type_name() == "Fused"
    ]
    scores = np.ones((1, 8), np.float32)
    mask, fill = np.ones((3, 8), bool), np.array(-9, np.float32)
    output = [ov.Tensor(np.zeros((1, 8), np.float32))]
    assert node.evaluate(output, [ov.Tensor(each) for each in (scores, mask, fill)])
    np.testing.assert_allclose(output[0].data, np.full((3, 8), 1 / 8))


def expected_of(mask: Array, x: Array, scaling: str, cond_keeps: bool, fill: float) -> Array:
    scores = OPERATORS[scaling](x.astype(float), 8) if scaling != "none" else x.astype(float)
    kept = np.where(mask == cond_keeps, scores, fill)
    with np.errstate(invalid="ignore"):
        weights = np.exp(kept - kept.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def arrays_of(model: ov.Model) -> list[Array]:
    random = np.random.default_rng(7)
    mask, x = (tuple(port.shape) for port in model.inputs)
    return [random.random(mask) < 0.7, random.standard_normal(x, np.float32) * 20]


@pytest.mark.parametrize("cond", [(96, 96), (2, 1, 1, 96), SHAPE, (96, 1), (1,)])
@pytest.mark.parametrize("fill", [-np.inf, -1e9, 0.5])
@pytest.mark.parametrize("cond_keeps", [True, False])
@pytest.mark.parametrize("scaling", ["none", "multiply", "divide"])
def test_a_chain_matches_its_definition(
    scaling: str, cond_keeps: bool, fill: float, cond: tuple[int, ...]
) -> None:
    model = accelerate(chain_model(scaling, cond_keeps=cond_keeps, fill=fill, cond=cond))
    assert chains(model) == [f"weights of {3 if scaling == 'none' else 4}"]
    mask, x = arrays_of(model)
    got = run(compile_model(model), [mask, x])
    expected = expected_of(mask, x, scaling, cond_keeps, fill)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-9)


def long_chain_model(bias: tuple[int, ...] = (4, 1, 96)) -> ov.Model:
    """A chain: a soft cap, a bias, a mask, and a multiplication after the mask."""
    x = ops.parameter(SHAPE, ov.Type.f32, name="x")
    mask = ops.parameter((96, 96), ov.Type.boolean, name="mask")
    added = ops.parameter(bias, ov.Type.f32, name="bias")
    capped = ops.multiply(ops.tanh(ops.divide(ops.constant(np.float32(8)), x)), np.float32(4))
    masked = ops.select(mask, ops.subtract(added, capped), ops.constant(np.float32(-30)))
    weights = ops.softmax(ops.multiply(masked, np.float32(0.5)), -1, name="weights")
    return ov.Model([weights], [mask, x, added])


def long_chain_of(mask: Array, x: Array, bias: Array) -> Array:
    scores = bias.astype(float) - np.tanh(8 / x.astype(float)) * 4
    kept = np.where(mask, scores, -30) * 0.5
    weights = np.exp(kept - kept.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("bias", [(4, 1, 96), SHAPE, (1,)])
def test_a_long_chain_matches_its_definition_before_and_after_import(bias: tuple[int, ...]) -> None:
    model = accelerate(long_chain_model(bias))
    assert chains(model) == ["weights of 7"]
    random = np.random.default_rng(7)
    mask, x = arrays_of(chain_model())
    added = random.standard_normal(bias, np.float32)
    compiled = compile_model(model)
    core = ov.Core()
    core.add_extension(maskwise.openvino.library())
    imported = core.import_model(compiled.export_model(), "CPU")
    for each in (compiled, imported):
        got = run(each, [mask, x, added])
        np.testing.assert_allclose(got, long_chain_of(mask, x, added), rtol=4e-6, atol=1e-9)


def test_fully_masked_rows_are_as_in_openvino() -> None:
    mask, x = arrays_of(chain_model())
    mask[:3] = False
    stock, got = (
        run(compile_model(m), [mask, x]) for m in (chain_model(), accelerate(chain_model()))
    )
    np.testing.assert_allclose(got, stock, rtol=2e-6, atol=1e-9)
    assert np.isnan(got[:, :, :3]).all()
    zeros = run(compile_model(accelerate(chain_model(), zero_masked_rows=True)), [mask, x])
    np.testing.assert_array_equal(zeros, np.nan_to_num(got))


def test_a_factor_divided_by_scores() -> None:
    model = accelerate(chain_model("divide", factor_first=True))
    assert chains(model) == ["weights of 4"]
    mask, x = arrays_of(model)
    kept = np.where(mask, 8 / x.astype(float), -np.inf)
    weights = np.exp(kept - kept.max(axis=-1, keepdims=True))
    expected = weights / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(run(compile_model(model), [mask, x]), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("hint", ["f16", "bf16", "dynamic"])
def test_every_precision_hint(hint: str) -> None:
    model = accelerate(chain_model())
    mask, x = arrays_of(model)
    x /= 100  # with small scores, rounding to bf16 changes the weights little
    got = run(compile_model(model, INFERENCE_PRECISION_HINT=hint), [mask, x])
    np.testing.assert_allclose(got, expected_of(mask, x, "multiply", True, -np.inf), rtol=5e-2)


@pytest.mark.parametrize(
    "model",
    [
        chain_model(axis=1),
        chain_model(shape=(2, 4, 64, 64), cond=(64, 64)),
        chain_model(shape=(-1, 4, 96, 96)),
    ],
)
def test_chains_that_openvino_runs(model: ov.Model) -> None:
    assert chains(accelerate(model)) == []


def joined_model(before: Any, after: Any, *, twice: bool = False) -> ov.Model:
    """A mask and a Softmax between two operators. `twice`: the masked scores have two consumers."""
    x = ops.parameter(SHAPE, ov.Type.f32)
    mask = ops.parameter((96, 96), ov.Type.boolean)
    select = ops.select(mask, before(x), ops.constant(np.float32(-1)))
    results = [after(ops.softmax(select, -1))]
    return ov.Model([*results, ops.relu(select)] if twice else results, [mask, x])


@pytest.mark.parametrize(
    "model",
    [
        joined_model(ops.relu, lambda y: y),
        joined_model(lambda x: x, ops.relu),
        joined_model(lambda x: ops.matmul(x, x, False, True), lambda y: y),
        joined_model(lambda x: x, lambda y: ops.matmul(y, y, False, False)),
        joined_model(lambda x: x, lambda y: y, twice=True),
    ],
)
def test_chains_with_neighbours_are_left_alone(model: ov.Model) -> None:
    assert chains(accelerate(model)) == []


def test_chains_of_more_dimensions_than_maskwise_supports_are_left_alone() -> None:
    accelerate(chain_model(shape=(1,) * 68 + (96, 96)))


def test_names_stay() -> None:
    model = chain_model()
    (softmax,) = [node for node in model.get_ops() if node.get_type_name() == "Softmax"]
    softmax.output(0).set_names({"w"})
    model = accelerate(ov.Model([softmax], model.get_parameters()))
    (softmax,) = [node for node in model.get_ops() if node.get_friendly_name() == "weights"]
    assert softmax.get_type_name() == "Fused" and "w" in softmax.output(0).names
    assert chains(model) == ["weights of 4"]


def test_many_requests_at_once() -> None:
    models = [accelerate(chain_model(shape=(n, 4, 96, 96))) for n in (2, 3, 5)]
    compiled = [compile_model(model, NUM_STREAMS=2) for model in models]
    inputs = [arrays_of(model) for model in models]
    expected = [expected_of(*arrays, "multiply", True, -np.inf) for arrays in inputs]

    def infer(job: int) -> None:
        got = run(compiled[job % 3], inputs[job % 3])
        np.testing.assert_allclose(got, expected[job % 3], rtol=2e-6, atol=1e-9)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(infer, range(60)))  # raises if a call raised
