"""Maskwise runs attention as one operation in OpenVINO."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
import pytest
from arrays import BFLOAT16, Array, in_a_process
from openvino import opset13 as ops
from sdpa_models import Attention, arrays_of, attention_model, attention_of, drawn, open_shape
from select_models import accelerate, compile_model, count_taken, kinds_of_run, run

LARGE = Attention(rows=130, keys=130)


def check(case: Attention, **settings: Any) -> None:
    """Compares with the definition and with OpenVINO alone, including fully masked rows."""
    model = attention_model(case)
    arrays = arrays_of(case)
    stock = run(compile_model(model), arrays)
    compiled = compile_model(accelerate(model, force=True), **settings)
    got = run(compiled, arrays)
    # Maskwise may also run the Select that converts a boolean mask to a bias.
    makes_bias = case.mask == "bool" and not case.whole and not case.selects
    assert count_taken(compiled) == (2 if makes_bias else 1), case
    expected = attention_of(case, arrays)
    assert got.shape == stock.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5, err_msg=str(case))
    np.testing.assert_allclose(got, stock, rtol=0, atol=2e-5, err_msg=str(case))


@pytest.mark.parametrize("seed", range(150))
def test_generated_models(seed: int) -> None:
    check(drawn(seed))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("opens", [True, False])
def test_every_transpose_is_removed(whole: bool, opens: bool) -> None:
    case = Attention(whole=whole, opens=opens, transposed=tuple("qkvo"), rows=130, keys=130)
    compiled = compile_model(accelerate(attention_model(case)))
    assert count_taken(compiled) == 1
    assert "Transpose" not in kinds_of_run(compiled)


@pytest.mark.parametrize("opens", [True, False])
def test_attention_is_exported_and_imported(opens: bool) -> None:
    case = Attention(
        mask="bool", mask_shape=(1, 56), opens=opens, transposed=("q", "o"), scale=0.25
    )
    core = ov.Core()
    core.add_extension(maskwise.openvino.library())
    compiled = compile_model(accelerate(attention_model(case), force=True))
    imported = core.import_model(compiled.export_model(), "CPU")
    arrays = arrays_of(case)
    for each in (compiled, imported):
        np.testing.assert_allclose(run(each, arrays), attention_of(case, arrays), atol=1e-5)


def words_model(opens: bool, heads: int = 4, depth: int = 32) -> ov.Model:
    """Attention between projections, as in a layer of a language model."""
    width = heads * depth
    random = np.random.default_rng(0)
    shape = [-1, -1, width] if opens else [1, 160, width]
    x = ops.parameter(ov.PartialShape(shape), ov.Type.f32)

    def weights() -> Any:
        return ops.constant(random.standard_normal((width, width)).astype("f") * width**-0.5)

    def head() -> Any:
        split = ops.reshape(ops.matmul(x, weights(), False, True), [0, 0, heads, depth], True)
        return ops.transpose(split, [0, 2, 1, 3])

    attention = ops.scaled_dot_product_attention(head(), head(), head(), causal=True)
    joined = ops.reshape(ops.transpose(attention, [0, 2, 1, 3]), [0, 0, width], True)
    return ov.Model([ops.matmul(joined, weights(), False, True)], [x])


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("hint", ["f32", "bf16"])
def test_attention_adds_no_reorder_and_no_conversion(opens: bool, hint: str) -> None:
    model = words_model(opens)
    stock, accelerated = (
        compile_model(one, INFERENCE_PRECISION_HINT=hint)
        for one in (model, accelerate(model, precision=hint))
    )
    assert count_taken(accelerated) == 1
    before, after = (kinds_of_run(each) for each in (stock, accelerated))
    for kind in ("Reorder", "Convert", "Transpose"):
        assert after.count(kind) <= before.count(kind), kind


def types_of(compiled: Any) -> list[str]:
    """Returns the element types of the inputs and the output of Maskwise's operation."""
    (node,) = [
        node
        for node in compiled.get_runtime_model().get_ordered_ops()
        if node.get_rt_info()["layerType"].astype(str) == "Reference"
    ]
    inputs = [node.get_input_element_type(i).to_string() for i in range(3)]
    return [*inputs, node.get_output_element_type(0).to_string()]


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("hint", ["bf16", "f16"])  # OpenVINO replaces f16 by bf16 on many CPUs
@pytest.mark.parametrize("precision", ["bf16", None])
def test_precision(precision: str, hint: str, opens: bool) -> None:
    """Attention computes in `precision`. The default is the model's type, or f16 if OpenVINO's
    CPU plugin computes in f16. Errors are at most 1.5 times OpenVINO's, plus 1e-3."""
    capabilities = ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if "BF16" not in capabilities:
        pytest.skip("the CPU plugin has no bf16 on this CPU")
    x = np.random.default_rng(1).standard_normal((1, 160, 128), np.float32)
    model = words_model(opens)
    exact = run(compile_model(model), [x])
    stock = compile_model(model, INFERENCE_PRECISION_HINT=precision or hint)
    accelerated = compile_model(
        accelerate(model, precision=precision), INFERENCE_PRECISION_HINT=hint
    )
    has_f16 = hint == "f16" and "FP16" in capabilities
    assert types_of(accelerated) == [precision or ("f16" if has_f16 else "f32")] * 4
    off = [np.abs(run(each, [x]) - exact).max() for each in (stock, accelerated)]
    assert off[1] <= 1.5 * off[0] + 1e-3


def test_without_precision_only_causal_f32_attention_is_taken_if_the_cpu_has_bf16() -> None:
    has_bf16 = "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    for causal in (True, False):
        model = attention_model(Attention(rows=130, keys=130, causal=causal))
        assert count_taken(accelerate(model, precision=None)) == (causal or not has_bf16)
        assert count_taken(accelerate(model, precision=ov.Type.f32)) == 1


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("hint", ["f32", "bf16"])
@pytest.mark.parametrize("element", [ov.Type.f16, ov.Type.bf16], ids=str)
def test_a_model_in_16_bits(element: ov.Type, hint: str, opens: bool) -> None:
    """OpenVINO's CPU plugin converts types that the plugin does not compute in. Inputs are exact in
    bf16, because the plugin's conversions truncate on some CPUs."""
    case = Attention(rows=130, keys=130, opens=opens, element=element)
    inputs = [ops.parameter(open_shape(case.shape_of(n), opens), ov.Type.f32) for n in "qkv"]
    attention = ops.scaled_dot_product_attention(*(ops.convert(one, element) for one in inputs))
    model = ov.Model([ops.convert(attention, "f32")], inputs)
    stock, accelerated = (
        compile_model(one, INFERENCE_PRECISION_HINT=hint)
        for one in (model, accelerate(model, force=True))
    )
    assert count_taken(accelerated) == 1
    arrays = [array.astype(BFLOAT16).astype("f") for array in arrays_of(case)]
    off = [
        np.abs(run(one, arrays) - attention_of(case, arrays)).max() for one in (stock, accelerated)
    ]
    assert off[1] <= 1.5 * off[0] + 1e-3


def cached_model(keeps_state: bool, whole: bool = True, causal: bool = False) -> ov.Model:
    """Returns a model of attention. With `keeps_state`, states cache keys and values, and a Gather
    reorders both by beam."""
    shape = ov.PartialShape([-1, 2, -1, 16])
    beams = ops.parameter([-1], ov.Type.i32, name="beams")
    words = {name: ops.parameter(shape, ov.Type.f32, name=name) for name in "qkv"}
    all_words, sinks = {"q": words["q"]}, []
    for name in "kv":
        info = ov.op.util.VariableInfo()
        info.data_shape, info.data_type, info.variable_id = shape, ov.Type.f32, name
        variable = ov.op.util.Variable(info)
        empty = ops.constant(np.zeros((1, 2, 0, 16), np.float32))
        past = ov.opset6.read_value(empty, variable)
        joined = ops.concat([ops.gather(past, beams, ops.constant(0)), words[name]], 2)
        if keeps_state:
            sinks.append(ov.opset6.assign(joined, variable))
        all_words[name] = joined if keeps_state else words[name]
    if whole:
        result = ops.scaled_dot_product_attention(*all_words.values(), causal=causal)
    else:
        scores = ops.matmul(all_words["q"], all_words["k"], False, True)
        result = ops.matmul(ops.softmax(scores, -1), all_words["v"], False, False)
    parameters = [*words.values(), beams] if keeps_state else list(words.values())
    return ov.Model([ops.result(result)], sinks, parameters, "cached")


@pytest.mark.parametrize("whole", [True, False])
def test_openvino_runs_attention_with_a_cache(whole: bool) -> None:
    model = accelerate(cached_model(True, whole))
    assert maskwise.openvino.taken(model) == []
    assert count_taken(compile_model(accelerate(cached_model(False, whole)))) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_forced_attention_with_a_cache(whole: bool) -> None:
    stock, accelerated = (
        compile_model(model, KV_CACHE_PRECISION="f32").create_infer_request()
        for model in (
            cached_model(True, whole),
            accelerate(cached_model(True, whole), force=True),
        )
    )
    random = np.random.default_rng(5)
    for count in (7, 1, 1, 3):
        inputs = {n: random.standard_normal((1, 2, count, 16)).astype("f") for n in "qkv"}
        inputs["beams"] = np.zeros(1, np.int32)
        expected, got = (
            np.array(next(iter(one.infer(inputs).values()))) for one in (stock, accelerated)
        )
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


def test_causal_attention_with_a_cache_is_never_taken() -> None:
    """With a cache, OpenVINO's causal mask aligns the last row with the last key."""
    model = accelerate(cached_model(True, causal=True), force=True)
    assert maskwise.openvino.taken(model) == []


@pytest.mark.parametrize("hint", ["f32", "bf16"])
@pytest.mark.parametrize("transposed", [(), ("o",)])
def test_names_are_openvinos(hint: str, transposed: tuple[str, ...]) -> None:
    names = []
    for change in (lambda model: model, accelerate):
        source = attention_model(Attention(rows=130, keys=130, transposed=transposed))
        last = source.get_results()[0].input_value(0)
        if transposed:
            last.get_node().input_value(0).get_tensor().set_names({"inner"})
        last.get_tensor().set_names({"last"})
        model = ov.Model([last], source.get_parameters())
        compiled = compile_model(change(model), INFERENCE_PRECISION_HINT=hint)
        # OpenVINO adds a name that begins with Result.
        names.append([{n for n in o.names if not n.startswith("Result")} for o in compiled.outputs])
    assert names == [[{"last"}]] * 2


def dynamic_rank_model(operand: str) -> ov.Model:
    shapes = {name: ov.PartialShape([1, 130, 2, 16]) for name in "qkv"}
    shapes[operand] = ov.PartialShape.dynamic()
    inputs = [ops.parameter(shape, ov.Type.f32, name=n) for n, shape in shapes.items()]
    transposed = [ops.transpose(one, [0, 2, 1, 3]) for one in inputs]
    none, scale = ops.constant(np.float32(0)), ops.constant(np.float32(0.25))
    return ov.Model([ops.scaled_dot_product_attention(*transposed, none, scale)], inputs)


@pytest.mark.parametrize("operand", "qkv")
def test_a_dynamic_rank(operand: str) -> None:
    """A reshape after accelerate may make the depth known."""
    model = accelerate(dynamic_rank_model(operand))
    model.reshape({one.get_friendly_name(): [1, 130, 2, 16] for one in model.get_parameters()})
    assert count_taken(compile_model(model)) == 1


@pytest.mark.parametrize("shape", [[1, 2, 130, -1], [-1, -1, -1, -1]], ids=str)
@pytest.mark.parametrize("causal", [True, False])
def test_the_default_scale_follows_the_depth_at_run_time(shape: list[int], causal: bool) -> None:
    inputs = [ops.parameter(shape, ov.Type.f32) for _ in "qkv"]
    model = ov.Model([ops.scaled_dot_product_attention(*inputs, causal=causal)], inputs)
    compiled = compile_model(accelerate(model, force=True))
    assert count_taken(compiled) == 1
    for depth in (16, 31):
        case = Attention(1, 2, 130, 130, depth, depth, causal=causal)
        arrays = arrays_of(case)
        got = run(compiled, arrays)
        np.testing.assert_allclose(got, attention_of(case, arrays), rtol=0, atol=1e-5)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("mask", ["bool", "bias"])
def test_fully_masked_rows(whole: bool, mask: str) -> None:
    """Fully masked rows are NaN as in OpenVINO. With zero_masked_rows, these rows are 0 as in
    PyTorch. Maskwise then takes small attentions, too."""
    case = Attention(whole=whole, mask=mask, mask_shape=(40, 56), selects=True)
    model, arrays = attention_model(case), arrays_of(case)
    arrays[3][:3] = False if mask == "bool" else -np.inf
    stock, accelerated, zeros = (
        run(compile_model(one), arrays)
        for one in (model, accelerate(model, force=True), accelerate(model, zero_masked_rows=True))
    )
    assert np.isnan(stock[:, :, :3]).all() and np.isfinite(stock[:, :, 3:]).all()
    np.testing.assert_allclose(accelerated, stock, rtol=0, atol=1e-5)
    np.testing.assert_allclose(zeros, np.nan_to_num(stock), rtol=0, atol=1e-5)
    assert (zeros[:, :, :3] == 0).all()


def test_attention_in_a_body_is_accelerated() -> None:
    case = Attention(rows=130, keys=130)
    inputs = [ops.parameter(case.shape_of(name), ov.Type.f32) for name in "qkv"]
    unused = ops.parameter(case.shape_of("q"), ov.Type.f32)
    body, other = attention_model(case), ov.Model([ops.abs(unused)], [unused])
    condition = ops.parameter([], ov.Type.boolean)
    branch = ops.if_op(condition)
    branch.set_then_body(body)
    branch.set_else_body(other)
    for parameter, value in zip(body.get_parameters(), inputs, strict=True):
        branch.set_input(value.output(0), parameter, None)
    branch.set_input(inputs[0].output(0), None, unused)
    result = branch.set_output(body.get_results()[0], other.get_results()[0])
    model = accelerate(ov.Model([result], [condition, *inputs]))
    assert maskwise.openvino.taken(model) == ["attention"]
    arrays = arrays_of(case)
    got = run(compile_model(model), [np.array(True), *arrays])
    np.testing.assert_allclose(got, attention_of(case, arrays), rtol=0, atol=1e-5)


def two_layers(opens: bool) -> ov.Model:
    """Two attentions. The second's query is the first's result."""
    shape = [-1, -1, -1, 32] if opens else [1, 2, 130, 32]
    x = ops.parameter(ov.PartialShape(shape), ov.Type.f32)
    first = ops.matmul(ops.softmax(ops.matmul(x, x, False, True), -1), x, False, False)
    second = ops.softmax(ops.matmul(first, x, False, True), -1)
    return ov.Model([ops.matmul(second, x, False, False)], [x])


@pytest.mark.parametrize("opens", [True, False])
def test_attention_after_attention(opens: bool) -> None:
    x = np.random.default_rng(6).standard_normal((1, 2, 130, 32)).astype("f")
    stock, accelerated = two_layers(opens), accelerate(two_layers(opens))
    compiled = compile_model(accelerated)
    assert count_taken(compiled) == 2 or opens
    np.testing.assert_allclose(run(compiled, [x]), run(compile_model(stock), [x]), atol=1e-5)


def test_an_inner_value_with_another_consumer() -> None:
    """Attention with a second consumer of an inner value is not replaced."""
    case = Attention(whole=False, rows=130, keys=130)
    model = attention_model(case)
    for kind in ("Softmax", "MatMul"):
        node = next(n for n in model.get_ordered_ops() if n.get_type_name() == kind)
        read = ov.Model(
            [model.get_results()[0], ops.result(ops.relu(node))], model.get_parameters()
        )
        assert maskwise.openvino.taken(accelerate(read)) == []


def test_verbose_lines_name_every_softmax() -> None:
    ran = in_a_process(
        """
import maskwise.openvino, openvino as ov
from sdpa_models import Attention, attention_model
from test_openvino_attention import cached_model
from openvino import opset13 as ops
from select_models import accelerate
for case in (Attention(rows=130, keys=130, opens=True), Attention(rows=130, keys=130, whole=False),
             Attention(rows=8, keys=8)):
    accelerate(attention_model(case))
cached = cached_model(True)
next(n for n in cached.get_ops() if "Attention" in n.get_type_name()).set_friendly_name("cached")
maskwise.openvino.accelerate(cached)
x = ops.parameter([4, 4], ov.Type.f32)
maskwise.openvino.accelerate(ov.Model([ops.softmax(x, 0, name="alone")], [x]))
""",
        MASKWISE_VERBOSE="1",
    )
    assert ran.stderr.splitlines() == [
        "maskwise,claim,attention,attention f32 1 node",
        "maskwise,claim,attention,attention f32 4 nodes",
        "maskwise,refuse,attention,attention f32 1 node,it is small",
        "maskwise,refuse,cached,attention f32 1 node,OpenVINO fuses the attention with the cache",
        "maskwise,refuse,alone,Softmax f32,no mask or attention pattern that Maskwise supports",
    ]


def lengths() -> Iterator[tuple[Attention, list[Array]]]:
    for rows in (3, 50, 130, 200):
        case = Attention(rows=rows, keys=rows, mask="bool", mask_shape=(rows, rows), opens=True)
        yield case, arrays_of(case)


@pytest.mark.parametrize("streams", [1, 2])
def test_requests_of_changing_shapes_at_once(streams: int) -> None:
    cases = list(lengths())
    compiled = compile_model(accelerate(attention_model(cases[0][0])), NUM_STREAMS=streams)
    expected = [attention_of(*each) for each in cases]

    def infer(job: int) -> None:
        got = run(compiled, cases[job % 4][1])
        np.testing.assert_allclose(got, expected[job % 4], rtol=0, atol=2e-5, equal_nan=True)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(infer, range(96)))  # raises if a call raised


def test_a_wrong_length_at_run_time() -> None:
    """As in OpenVINO, a request still works after it has failed."""
    case = Attention(mask="bias", mask_shape=(40, 56), opens=True)
    compiled = compile_model(accelerate(attention_model(case), force=True))
    arrays = arrays_of(case)
    request = compiled.create_infer_request()
    wrong = [*arrays[:3], np.zeros((40, 57), np.float32)]
    with pytest.raises(RuntimeError):
        request.infer(wrong)
    request.infer(arrays)
    got = np.array(request.get_output_tensor(0).data)
    np.testing.assert_allclose(got, attention_of(case, arrays), rtol=0, atol=1e-5)


FIGURES = sorted((Path(__file__).parents[2] / "docs/figures").glob("*/openvino.json"))
ALONE = re.compile(r"attention (\d+)x(\d+)x(\d+), (?!scaled_dot_product|masked_fill)")


def figures_of_attention() -> Iterator[tuple[str, int, int, int, float]]:
    for path in FIGURES:
        for name, dtype, *_, faster in json.loads(path.read_text())["rows"]:
            if alone := ALONE.match(name):
                yield (
                    f"{path.parent.name}: {name} {dtype}",
                    *map(int, alone.groups()),
                    float(faster),
                )


def test_attention_is_taken_only_if_it_is_not_slower() -> None:
    """Maskwise's size limits agree with the times that `scripts/bench openvino` has measured."""
    figures = list(figures_of_attention())
    are_taken = set()
    for name, heads, length, depth, faster in figures:
        case = Attention(1, heads, length, length, depth, depth)
        is_taken = maskwise.openvino.taken(accelerate(attention_model(case))) != []
        assert faster >= 0.95 or not is_taken, name
        are_taken.add(is_taken)
    assert are_taken == {True, False}
