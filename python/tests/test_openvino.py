"""Compares Maskwise's Select in OpenVINO with OpenVINO's: values, types, shapes and names."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
import pytest
from arrays import Array, assert_same_bits, in_a_process, random_array
from onnx import TensorProto
from onnx_where import where_model
from openvino import opset13 as ops
from select_models import (
    SETTINGS,
    TYPES,
    accelerate,
    compile_model,
    count_taken,
    run,
    select_model,
    selects,
)

SHAPES = [
    [[64], [64], [64]],
    [[3, 2], [3, 2], [3, 2]],
    [[4, 5], [2, 3, 4, 5], [2, 3, 4, 5]],
    [[2, 1, 1, 33], [2, 3, 4, 33], []],
    [[1, 1, 32, 32], [], [1, 16, 32, 32]],
    [[7, 1], [7, 3], [1, 3]],
    [[2, 3, 4], [4], []],  # OpenVINO allows a larger cond, but its specification does not
    [[], [], []],
    [[0, 3], [1, 3], [3]],
    [[300, 200], [300, 200], [1, 200]],
]


# The CPU plugin converts these types, which loses upper bits, denormals or NaN payloads.
CONVERTED = (ov.Type.f16, ov.Type.bf16, ov.Type.i64, ov.Type.u64, ov.Type.f64)


def operands(shapes: list[list[int]], element: ov.Type) -> list[Array]:
    random = np.random.default_rng(2026)
    cond, *sides = (tuple(shape) for shape in shapes)
    values = [
        random.integers(1, 1 << 11, side).astype(TYPES[element])
        if element in CONVERTED
        else random_array(random, side, TYPES[element])
        for side in sides
    ]
    return [random_array(random, cond, np.dtype("?")), *values]


@pytest.mark.parametrize("element", TYPES, ids=str)
def test_every_type_and_broadcast(element: ov.Type) -> None:
    for shapes in SHAPES:
        arrays = operands(shapes, element)
        model = select_model(shapes, element)
        accelerated = accelerate(model, force=True)
        assert (selects(model), selects(accelerated)) == (
            ["opset1"],
            ["opset1" if 0 in shapes[0] else "maskwise"],
        )
        compiled = compile_model(accelerated)
        assert count_taken(compiled) == 1 or 0 in shapes[0]
        assert_same_bits(run(compiled, arrays), np.where(*arrays))
        assert_same_bits(run(compile_model(model), arrays), np.where(*arrays))


def test_narrowing_stays_as_in_openvino() -> None:
    for element in (ov.Type.i64, ov.Type.u64, ov.Type.f64):
        large = np.full(2, (1 << 40) + 1, element.to_dtype())
        stock = select_model([[2]] * 3, element, then=ops.abs)
        arrays = [np.array([True, False]), large, large]
        narrowed = run(compile_model(stock), arrays)
        assert not np.array_equal(narrowed, large)
        assert_same_bits(run(compile_model(accelerate(stock, force=True)), arrays), narrowed)


@pytest.mark.parametrize("hint", ["f16", "bf16", "dynamic"])
@pytest.mark.parametrize("element", [ov.Type.f32, ov.Type.f16, ov.Type.bf16, ov.Type.f64], ids=str)
def test_every_precision_hint(element: ov.Type, hint: str) -> None:
    shapes = [[4, 5], [2, 3, 4, 5], [2, 1, 4, 5]]
    random = np.random.default_rng(3)
    values = [random.integers(-99, 99, shape).astype(TYPES[element]) for shape in shapes[1:]]
    arrays = [random.random(shapes[0]) < 0.5, *values]
    model = accelerate(select_model(shapes, element), force=True)
    compiled = compile_model(model, INFERENCE_PRECISION_HINT=hint)
    assert count_taken(compiled) == 1
    assert_same_bits(run(compiled, arrays), np.where(*arrays))


WEIGHTS = np.random.default_rng(1).standard_normal((64, 64), np.float32)


def network() -> ov.Model:
    mask, x = ops.parameter([64, 64], ov.Type.boolean), ops.parameter([64, 64], ov.Type.f32)
    y = ops.matmul(x, ops.constant(WEIGHTS), False, False)
    select = ops.select(mask, y, ops.relu(ops.matmul(y, ops.constant(WEIGHTS), False, True)))
    weights = ops.softmax(select, -1)
    return ov.Model([ops.matmul(weights, ops.constant(WEIGHTS), False, False)], [mask, x])


@pytest.mark.parametrize("hint", ["f32", "f16", "bf16", "dynamic"])
def test_a_select_amid_other_operators(hint: str) -> None:
    random = np.random.default_rng(2)
    mask, x = random.random((64, 64)) < 0.5, random.standard_normal((64, 64), np.float32) / 64
    y = x @ WEIGHTS
    weights = np.exp(np.where(mask, y, np.maximum(y @ WEIGHTS.T, 0)))
    expected = weights / weights.sum(axis=-1, keepdims=True) @ WEIGHTS
    model = accelerate(network(), force=True)
    compiled = compile_model(model, INFERENCE_PRECISION_HINT=hint)
    assert count_taken(compiled) == 1
    got = run(compiled, [mask, x])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 if hint == "f32" else 2e-2)


def test_conversions_of_the_model_still_round() -> None:
    cond, x, y = (ops.parameter([64], kind) for kind in (ov.Type.boolean, ov.Type.f64, ov.Type.f64))
    select = ops.select(cond, ops.convert(x, "f32"), ops.convert(y, "f32"))
    model = accelerate(ov.Model([ops.convert(select, "f64")], [cond, x, y]), force=True)
    random = np.random.default_rng(5)
    arrays = [random.random(64) < 0.5, random.random(64), random.random(64)]
    rounded = np.where(*arrays).astype(np.float32).astype(np.float64)
    assert_same_bits(run(compile_model(model), arrays), rounded)


SPECIFICATION = """<net name="example" version="11"><layers>
<layer id="0" name="cond" type="Parameter" version="opset1">
  <data element_type="boolean" shape="3,2"/>
  <output><port id="0" precision="BOOL"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="1" name="then" type="Parameter" version="opset1">
  <data element_type="i32" shape="3,2"/>
  <output><port id="0" precision="I32"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="2" name="else" type="Parameter" version="opset1">
  <data element_type="i32" shape="3,2"/>
  <output><port id="0" precision="I32"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="3" name="select" type="Select" version="opset1">
  <data auto_broadcast="numpy"/>
  <input>
    <port id="0"><dim>3</dim><dim>2</dim></port>
    <port id="1"><dim>3</dim><dim>2</dim></port>
    <port id="2"><dim>3</dim><dim>2</dim></port>
  </input>
  <output><port id="3" precision="I32"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="4" name="result" type="Result" version="opset1">
  <input><port id="0"><dim>3</dim><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
<edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
</edges></net>"""


def test_the_example_of_the_specification() -> None:
    model = accelerate(ov.Core().read_model(SPECIFICATION.encode()), force=True)
    compiled = compile_model(model)
    assert count_taken(compiled) == 1
    cond = np.array([[False, False], [True, False], [True, True]])
    then = np.array([[-1, 0], [1, 2], [3, 4]], np.int32)
    other = np.array([[11, 10], [9, 8], [7, 6]], np.int32)
    assert run(compiled, [cond, then, other]).tolist() == [[11, 10], [1, 8], [3, 4]]


def test_broadcast_none_requires_equal_shapes() -> None:
    model = accelerate(select_model([[2, 3]] * 3, broadcast="none"), force=True)
    arrays = operands([[2, 3]] * 3, ov.Type.f32)
    assert_same_bits(run(compile_model(model), arrays), np.where(*arrays))
    model = accelerate(select_model([[-1, 3]] * 3, broadcast="none"), force=True)
    with pytest.raises(RuntimeError, match=r"Maskwise: shapes do not broadcast: cond is \[1,3\]"):
        run(compile_model(model), [arrays[0][:1], *arrays[1:]])


@pytest.mark.parametrize("element", [ov.Type.f32, ov.Type.f16, ov.Type.u64], ids=str)
@pytest.mark.parametrize("shapes", [[[-1, -1]] * 3, [[-1], [2, -1], []], [[-1, 3], [-1, 3], [3]]])
def test_shapes_that_are_known_only_at_run_time(shapes: list[list[int]], element: ov.Type) -> None:
    model = select_model(shapes, element)
    accelerated = accelerate(model, force=True)
    assert accelerated.output(0).partial_shape == model.output(0).partial_shape
    compiled = compile_model(accelerated)
    for extent in (2, 5, 2, 0):
        shapes_now = [[extent if dim == -1 else dim for dim in shape] for shape in shapes]
        shapes_now[0] = shapes_now[0] if len(shapes_now[0]) == 2 else shapes_now[1][-1:]
        arrays = operands(shapes_now, element)
        assert_same_bits(run(compiled, arrays), np.where(*arrays))


def test_an_unknown_rank_is_inferred_as_by_openvino() -> None:
    dynamic = ov.PartialShape.dynamic()
    for shapes in ([dynamic] * 3, [dynamic, [2, 3], [3]], [[4, 1], dynamic, [-1]]):
        model = select_model(shapes)
        accelerated = accelerate(model, force=True)
        assert accelerated.output(0).partial_shape == model.output(0).partial_shape
        accelerated.reshape({name: [2, 3] for name in accelerated.inputs})
        arrays = operands([[2, 3]] * 3, ov.Type.f32)
        assert_same_bits(run(compile_model(accelerated), arrays), np.where(*arrays))


def test_names_info_and_consumers_are_kept() -> None:
    model = select_model([[2, 3]] * 3, then=ops.relu)
    (select,) = [node for node in model.get_ops() if node.get_friendly_name() == "select"]
    select.output(0).set_names({"kept", "masked"})
    select.get_rt_info()["mine"] = "info"
    model.add_outputs("masked")
    model = accelerate(model, force=True)
    (select,) = [node for node in model.get_ops() if node.get_friendly_name() == "select"]
    assert select.get_type_info().version_id == "maskwise"
    assert select.output(0).names == {"kept", "masked"}
    assert str(select.get_rt_info()["mine"].astype(str)) == "info"
    readers = [port.get_node().get_type_name() for port in select.output(0).get_target_inputs()]
    assert sorted(readers) == ["Relu", "Result"]
    arrays = operands([[2, 3]] * 3, ov.Type.f32)
    arrays[1:] = [np.nan_to_num(array) for array in arrays[1:]]
    results = compile_model(model)(arrays)
    expected = np.where(*arrays)
    assert_same_bits(results["masked"], expected)
    assert_same_bits(results[0], np.maximum(expected, np.float32(0)))


def test_selects_in_bodies_are_accelerated() -> None:
    """Counts verbose lines, because a compiled model does not show its bodies' nodes."""
    code = """
from test_openvino import *
source = branches()
model = accelerate(source, force=True)
assert [selects(one.get_function(i)) for graph in (source, model) for one in graph.get_ops()
        if one.get_type_name() == "If" for i in range(2)] == [["opset1"]] * 2 + [["maskwise"]] * 2
values = np.arange(6, dtype=np.float32).reshape(2, 3)
compiled = compile_model(model)
for taken in (True, False):
    expected = np.where([True, False, True], values, np.float32(taken))
    assert_same_bits(run(compiled, [np.array(taken), values]), expected)
"""
    ran = in_a_process(code, MASKWISE_VERBOSE="2")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("maskwise,exec,") == 2


def branches() -> ov.Model:
    cond, x = ops.parameter([], ov.Type.boolean), ops.parameter([2, 3], ov.Type.f32)
    branch = ops.if_op(cond)
    branch.set_then_body(select_body(True))
    branch.set_else_body(select_body(False))
    branch.set_input(x.output(0), *(body_input(branch, i) for i in range(2)))
    branch.set_output(*(branch.get_function(i).get_results()[0] for i in range(2)))
    return ov.Model([branch.output(0)], [cond, x])


def select_body(taken: bool) -> ov.Model:
    x = ops.parameter([2, 3], ov.Type.f32)
    mask = ops.constant(np.array([True, False, True]))
    return ov.Model([ops.select(mask, x, ops.constant(np.float32(taken)))], [x])


def body_input(branch: Any, body: int) -> Any:
    return branch.get_function(body).get_parameters()[0]


@pytest.mark.parametrize("element", [ov.Type.f16, ov.Type.f32, ov.Type.i16], ids=str)
@pytest.mark.parametrize("shape", [[], [5], [-1]], ids=str)
def test_a_result_that_a_body_reads(shape: list[int], element: ov.Type) -> None:
    """The plugin clones the Select again after it has inserted conversions around the Select."""
    model = select_model([shape] * 3, element)
    select = next(node for node in model.get_ops() if node.get_type_name() == "Select")
    flag = ops.parameter([], ov.Type.boolean)
    branch = ops.if_op(flag)
    bodies = []
    for make in (ops.negative, ops.abs):
        x = ops.parameter(shape, element)
        bodies.append(ov.Model([make(x)], [x]))
    branch.set_then_body(bodies[0])
    branch.set_else_body(bodies[1])
    branch.set_input(select.output(0), *(body.get_parameters()[0] for body in bodies))
    branch.set_output(*(body.get_results()[0] for body in bodies))
    whole = ov.Model([branch.output(0)], [*model.get_parameters(), flag])
    arrays = operands([[5 if n < 0 else n for n in shape]] * 3, element)
    for taken, operator in ((True, np.negative), (False, np.abs)):
        compiled = compile_model(accelerate(whole, force=True))
        assert count_taken(compiled) == 1
        wanted = np.asarray(operator(np.where(*arrays)))
        assert_same_bits(run(compiled, [*arrays, np.array(taken)]), wanted)


def test_constants_are_folded() -> None:
    mask = ops.constant(np.array([True, False, True]))
    select = ops.select(mask, ops.constant(np.float32([1, 2, 3])), ops.constant(np.float32(-1)))
    x = ops.parameter([3], ov.Type.f32)
    model = accelerate(ov.Model([ops.add(x, select)], [x]), force=True)
    compiled = compile_model(model)
    assert count_taken(compiled) == 0
    assert run(compiled, [np.zeros(3, np.float32)]).tolist() == [1, -1, 3]


LARGE = [[256, 256], [16, 8, 256, 256], [16, 8, 256, 256]]  # 32 MiB


def test_models_that_are_read(tmp_path: Path) -> None:
    """Reads models from IR and ONNX files, and accelerated models from IR files."""
    core, accelerated = ov.Core(), ov.Core()
    accelerated.add_extension(maskwise.openvino.library())
    ov.save_model(select_model(LARGE), tmp_path / "a.xml", compress_to_fp16=False)
    (tmp_path / "a.onnx").write_bytes(where_model(TensorProto.FLOAT, LARGE, 16))
    ov.save_model(accelerate(select_model(LARGE)), tmp_path / "own.xml", compress_to_fp16=False)
    arrays = operands(LARGE, ov.Type.f32)
    for copy in (
        *(
            accelerate(one.read_model(tmp_path / n))
            for one in (core, accelerated)
            for n in ("a.xml", "a.onnx")
        ),
        accelerated.read_model(tmp_path / "own.xml"),
    ):
        compiled = core.compile_model(copy, "CPU", SETTINGS)
        assert count_taken(compiled) == 1
        assert_same_bits(run(compiled, arrays), np.where(*arrays))
    assert selects(accelerated.read_model(tmp_path / "a.xml")) == ["opset1"]
    with pytest.raises(RuntimeError, match="maskwise"):
        core.read_model(tmp_path / "own.xml")


@pytest.mark.parametrize("shape", [[-1, -1], [512, 512]])
def test_many_requests_at_once(shape: list[int]) -> None:
    model = accelerate(select_model([shape] * 3), force=True)
    compiled = compile_model(model, NUM_STREAMS=2)

    def infer(seed: int) -> bool:
        extents = (512, 512) if shape[0] > 0 else (100 + seed, 300)
        random = np.random.default_rng(seed)
        arrays = [random.random(extents) < 0.5]
        arrays += [random.random(extents, np.float32) for _ in "xy"]
        return all(np.array_equal(run(compiled, arrays), np.where(*arrays)) for _ in range(5))

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(infer, range(32)))


def test_requests_in_flight_change_their_shapes() -> None:
    """The queue reuses its requests, so a request may run several shapes."""
    model = accelerate(select_model([[-1], [-1, -1, -1], [-1, 1]]), force=True)
    queue = ov.AsyncInferQueue(compile_model(model, NUM_STREAMS=2), 4)
    got: dict[int, Array] = {}

    def keep(request: ov.InferRequest, job: int) -> None:
        got[job] = request.get_output_tensor(0).data.copy()

    queue.set_callback(keep)
    inputs = [
        operands([[n], [1 + n % 7, 129 - n, n], [129 - n, 1]], ov.Type.f32)
        for n in (1 + 41 * job % 128 for job in range(64))
    ]
    for job, arrays in enumerate(inputs):
        queue.start_async(arrays, job)
    queue.wait_all()
    for job, arrays in enumerate(inputs):
        assert_same_bits(got[job], np.where(*arrays))


def test_models_are_compiled_while_others_run() -> None:
    core = ov.Core()
    shared = select_model([[192, 192]] * 3)

    def work(seed: int) -> None:
        for turn in range(4):
            extent = 192 if seed % 2 else 32 * (1 + seed + turn)
            source = select_model([[extent, extent]] * 3)
            model = accelerate(shared if seed % 2 else source, force=True)
            compiled = core.compile_model(model, "CPU", SETTINGS)
            assert count_taken(compiled) == 1
            arrays = operands([[extent, extent]] * 3, ov.Type.f32)
            assert_same_bits(run(compiled, arrays), np.where(*arrays))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))  # raises if a call raised
