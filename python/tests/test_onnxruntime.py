"""Maskwise's execution provider runs Where in ONNX Runtime, bit-exactly."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from arrays import Array, assert_same_bits
from onnx import ModelProto, TensorProto, helper
from onnx.backend.base import Backend, BackendRep
from onnx_where import (
    choice,
    draw_shapes,
    expect_node_tests_pass,
    model_of,
    op,
    value,
    where_inputs,
    where_model,
)
from where_models import TYPES, draw, run, session_of

MODELS = 2000


class ProviderBackend(Backend, BackendRep):
    """A backend for ONNX's runner of node tests."""

    def __init__(self, model: ModelProto) -> None:
        self.session = session_of(model.SerializeToString())

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> ProviderBackend:
        return cls(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        names = [one.name for one in self.session.get_inputs()]
        return tuple(self.session.run(None, dict(zip(names, inputs, strict=True))))


def expect_right(got: Array, feeds: dict[str, Array]) -> None:
    expected = np.asarray(np.where(feeds["c"], feeds["x"], feeds["y"]))
    if expected.dtype == object:
        assert (got.shape, got.tolist()) == (expected.shape, expected.tolist())
    else:
        assert_same_bits(got, expected)


def draw_feeds(random: np.random.Generator, shapes: Any, element: int) -> dict[str, Array]:
    kinds = (TensorProto.BOOL, element, element)
    return {n: draw(random, s, k) for n, s, k in zip("cxy", shapes, kinds, strict=True)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ONNX warns while it creates its tests
def test_node_tests() -> None:
    expect_node_tests_pass(ProviderBackend, __name__)


@pytest.mark.parametrize("element", TYPES, ids=TensorProto.DataType.Name)
def test_generated_models(element: int) -> None:
    """Models with dynamic shapes run several shapes."""
    random = np.random.default_rng(element)
    for number in range(MODELS // len(TYPES) + 1):
        shapes = draw_shapes(random)
        opset = int(random.integers(16 if element == TensorProto.BFLOAT16 else 9, 22))
        is_open = number % 2 == 0
        declared = [[None] * len(shape) for shape in shapes] if is_open else shapes
        # Maskwise does not claim a Where of few i64 elements, which may compute a shape.
        session = session_of(
            where_model(element, declared, opset), is_claimed=element != TensorProto.INT64
        )
        for again in range(1 + 2 * is_open):
            if again > 0:
                shapes = [tuple(e if e == 1 else 2 * e for e in shape) for shape in shapes]
            feeds = draw_feeds(random, shapes, element)
            expect_right(run(session, feeds, element), feeds)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 1, 256, 256), (8, 4, 256, 256), ()],
        [(8, 1, 1, 256), (), (8, 4, 256, 256)],
        [(256, 256), (8, 4, 1, 256), (8, 4, 256, 1)],
        [(8, 4, 256, 256)] * 3,
    ],
)
def test_large_operands(shapes: Any, threads: int) -> None:
    random = np.random.default_rng(1)
    feeds = draw_feeds(random, shapes, TensorProto.FLOAT)
    declared = [[None] * len(shape) for shape in shapes]
    session = session_of(where_model(TensorProto.FLOAT, declared), threads)
    for _ in range(3):
        expect_right(run(session, feeds, TensorProto.FLOAT), feeds)


def test_bits_do_not_change() -> None:
    """-0.0 and payloads of quiet and signalling NaNs do not change. Any nonzero byte is true."""
    bits = np.array([0x80000000, 0x7FC12345, 0x7F812345, 0xFFFFFFFF], np.uint32)
    feeds = {
        "c": np.array([1, 2, 0, 255], np.uint8).view(bool),
        "x": bits.view(np.float32),
        "y": np.ascontiguousarray(bits[::-1]).view(np.float32),
    }
    got = run(session_of(where_model(TensorProto.FLOAT, [[4]] * 3)), feeds, TensorProto.FLOAT)
    assert got.view(np.uint32).tolist() == [bits[0], bits[1], bits[1], bits[3]]


def test_a_chain_that_may_run_in_place() -> None:
    """Each Where may overwrite the previous Where's result, which is X or Y."""
    links = ["x", "first", "second", "third", "o"]
    nodes = [
        helper.make_node("Where", ["c", before, "y"] if i % 2 else ["c", "y", before], [after])
        for i, (before, after) in enumerate(itertools.pairwise(links))
    ]
    inputs = where_inputs(TensorProto.FLOAT, [["n"], ["n"], []])
    session = session_of(model_of(nodes, inputs, [value("o", TensorProto.FLOAT, ["n"])]))
    random = np.random.default_rng(2)
    for count in (1, 7, 1000, 1 << 19):
        feeds = draw_feeds(random, [(count,), (count,), ()], TensorProto.FLOAT)
        expected = feeds["x"]
        for i in range(4):
            sides = (expected, feeds["y"]) if i % 2 else (feeds["y"], expected)
            expected = np.where(feeds["c"], *sides)
        assert_same_bits(run(session, feeds, TensorProto.FLOAT), expected)


def claimed_inside(model: bytes, count: int, capfd: Any) -> Any:
    session = session_of(model, maskwise_verbose="1")
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(",")[1] for line in lines] == ["claim"] * count, lines
    return session


def test_inside_if(capfd: Any) -> None:
    last = choice(*([op("Where", "c", *sides, "r")] for sides in ("xy", "yx")))
    inputs = [value("b", TensorProto.BOOL, []), *where_inputs(TensorProto.FLOAT, [["n"]] * 3)]
    model = model_of([last], inputs, [value("o", TensorProto.FLOAT, None)])
    session = claimed_inside(model, 2, capfd)
    feeds = draw_feeds(np.random.default_rng(3), [(9,)] * 3, TensorProto.FLOAT)
    for chosen, sides in ((True, "xy"), (False, "yx")):
        (got,) = session.run(None, {"b": np.array(chosen), **feeds})
        assert_same_bits(got, np.where(feeds["c"], feeds[sides[0]], feeds[sides[1]]))


def test_inside_loop(capfd: Any) -> None:
    """The value's shape grows in each iteration."""
    f32, boolean, i64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
    nodes = [
        op("Concat", "v", "v", "twice", axis=0),
        op("IsNaN", "twice", "hole"),
        op("Where", "hole", "y", "twice", "next"),
        op("Identity", "go", "on"),
    ]
    inputs = [value("i", i64, []), value("go", boolean, []), value("v", f32, [None])]
    turn = helper.make_graph(
        nodes, "turn", inputs, [value("on", boolean, []), value("next", f32, [None])]
    )
    loop = op("Loop", "count", "", "x", "o", body=turn)
    outer = [value("count", i64, []), value("x", f32, [None]), value("y", f32, [])]
    session = claimed_inside(model_of([loop], outer, [value("o", f32, [None])]), 1, capfd)
    x = np.array([1, np.nan, -0.0], np.float32)
    (got,) = session.run(None, {"count": np.array(5), "x": x, "y": np.array(7, np.float32)})
    assert_same_bits(got, np.tile(np.array([1, 7, -0.0], np.float32), 32))


def test_inside_scan(capfd: Any) -> None:
    f32, boolean = TensorProto.FLOAT, TensorProto.BOOL
    nodes = [
        op("Where", "c", "x", "state", "next"),
        op("Identity", "next", "row"),
    ]
    inputs = [value("state", f32, ["n"]), value("c", boolean, ["n"]), value("x", f32, ["n"])]
    turn = helper.make_graph(
        nodes, "turn", inputs, [value("next", f32, ["n"]), value("row", f32, ["n"])]
    )
    scan = helper.make_node("Scan", ["y", "cs", "xs"], ["last", "o"], num_scan_inputs=2, body=turn)
    outer = [value("y", f32, ["n"]), value("cs", boolean, ["t", "n"]), value("xs", f32, ["t", "n"])]
    session = claimed_inside(model_of([scan], outer, [value("o", f32, None)]), 1, capfd)
    random = np.random.default_rng(4)
    feeds = {name: draw(random, (6, 5), kind) for name, kind in (("cs", boolean), ("xs", f32))}
    feeds["y"] = draw(random, (5,), f32)
    state, rows = feeds["y"], []
    for c, x in zip(feeds["cs"], feeds["xs"], strict=True):
        state = np.where(c, x, state)
        rows.append(state)
    assert_same_bits(session.run(None, feeds)[0], np.stack(rows))


def test_sessions_and_threads_at_once() -> None:
    model = where_model(TensorProto.FLOAT, [["a", "b"], ["a", "b"], []])
    sessions = [session_of(model, threads) for threads in (1, 2, 2)]

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for turn in range(60):
            shape = (int(random.integers(1, 600)), int(random.integers(1, 900)))
            feeds = draw_feeds(random, [shape, shape, ()], TensorProto.FLOAT)
            got = run(sessions[(seed + turn) % 3], feeds, TensorProto.FLOAT)
            expect_right(got, feeds)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))  # raises if a call raised
