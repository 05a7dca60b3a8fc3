"""A chain of operators around a Softmax runs as one fused node in ONNX Runtime."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import maskwise.onnxruntime
import numpy as np
import pytest
from fused_models import (
    BOOL,
    F16,
    F32,
    NAMES,
    STEPS,
    assert_close,
    chain,
    check,
    checked,
    constants_of,
    expected,
    fused_session,
    initializers,
    make_model,
    normal,
    row_feeds,
    used,
)
from onnx import TensorProto, helper
from onnx_where import choice, model_of, op, value
from where_models import options, session_of, stock_session

CHAINS = {
    "scale": ["mul", "mul_reversed"],
    "scale and mask": ["div", "keep"],
    "masked where true": ["mul_reversed", "mask"],
    "bias": ["mul", "add"],
    "bias first": ["add_reversed", "div", "keep"],
    "mask and bias": ["mul", "mask", "add"],
    "sub": ["sub", "keep"],
    "leaky": ["mul", "leaky", "keep"],
    "soft cap": ["div", "tanh", "mul", "add"],
}
# Shapes of the mask or the bias, for scores {2,3,5,40}.
MASKS = [(2, 3, 5, 40), (1, 1, 5, 40), (2, 1, 1, 40), (5, 40), (40,), (2, 3, 5, 1), ()]


@pytest.mark.parametrize("alpha", [0.0, -0.0, -0.5, np.inf, -np.inf, np.nan])
def test_slopes_of_leaky_relu(alpha: float, capfd: Any) -> None:
    """Divides by LeakyRelu's result, so a zero of the wrong sign gives an infinity of the wrong
    sign."""
    nodes = [
        op("LeakyRelu", "x", "slope", alpha=alpha),
        op("Div", "scale", "slope", "steep"),
        op("Where", "c", "steep", "fill", "masked"),
        op("Softmax", "masked", "o"),
    ]
    zeros = np.array([[0.0, -0.0, 1.0, 2.0], [-0.0, -0.0, -1.0, 2.0]], "f").repeat(16, 1)
    feeds = {"x": zeros, "c": np.arange(64) % 4 < 3}
    model = make_model(nodes, feeds, F32, constants_of(F32, -1e4))
    session = fused_session(model, capfd, "rows f32 3 nodes")
    assert_close(session.run(None, feeds)[0], stock_session(model).run(None, feeds)[0], F32)


@pytest.mark.parametrize("element", [F32, F16], ids=["f32", "f16"])
@pytest.mark.parametrize("zeros", [False, True], ids=["NaN stays", "NaN becomes 0"])
@pytest.mark.parametrize("form", CHAINS)
def test_rows(form: str, zeros: bool, element: int, capfd: Any) -> None:
    random = np.random.default_rng(1)
    nodes = chain(CHAINS[form], "x", zeros=zeros)
    constants = constants_of(element, -30.0 if form == "masked where true" else -np.inf)
    for mask in MASKS:
        feeds = row_feeds(random, (2, 3, 5, 40), mask, element)
        claim = f"rows {NAMES[element]} {len(nodes)} nodes"
        checked(capfd, nodes, feeds, claim, element=element, constants=constants, is_open=True)


def draw_shape(random: np.random.Generator, whole: tuple[int, ...]) -> tuple[int, ...]:
    """Returns a shape that broadcasts to `whole`."""
    start = int(random.integers(0, len(whole) + 1))
    return tuple(extent if random.random() < 0.7 else 1 for extent in whole[start:])


@pytest.mark.parametrize("element", [F32, F16], ids=["f32", "f16"])
def test_generated_chains(element: int) -> None:
    """Shapes are dynamic. Results are correct with and without a claim."""
    random = np.random.default_rng(23 + element)
    for _ in range(150):
        steps = list(random.choice(list(STEPS), int(random.integers(1, 6))))
        nodes = chain(steps, "x", zeros=bool(random.random() < 0.5))
        constants = used(nodes, constants_of(element, -9.0))
        whole = tuple(int(n) for n in (*random.integers(0, 5, 3), random.integers(1, 90)))
        x = draw_shape(random, whole) or whole[3:]
        arrays = row_feeds(random, x, draw_shape(random, whole), element)
        arrays["bias"] = normal(random, draw_shape(random, whole), element)
        feeds = used(nodes, arrays)
        model = make_model(nodes, feeds, element, constants, is_open=True)
        check(session_of(model, is_claimed=False), nodes, feeds, constants, element)


@pytest.mark.parametrize("shape", [(1, 3, 1, 40), (3, 5, 40), (2, 3, 5, 1), (40,), (1,)])
def test_scores_that_are_broadcast(shape: tuple[int, ...], capfd: Any) -> None:
    """The mask broadcasts the scores to {2,3,5,40}."""
    random = np.random.default_rng(2)
    nodes = chain(["mul", "keep", "add"], "x")
    feeds = row_feeds(random, (2, 3, 5, 40), (2, 3, 5, 40), F32)
    feeds["x"] = normal(random, shape)
    constants = constants_of(F32, -5.0)
    checked(capfd, nodes, feeds, "rows f32 4 nodes", constants=constants, is_open=True)


def test_shapes_change_from_run_to_run(capfd: Any) -> None:
    random = np.random.default_rng(3)
    nodes = chain(["mul", "keep"], "x", zeros=True)
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, row_feeds(random, (2, 3, 4, 40), (3, 4, 40), F32))
    opened: dict[str, Any] = {"x": ["b", "h", "s", "t"], "c": [None] * 3}
    session = fused_session(
        make_model(nodes, feeds, F32, constants, shapes=opened), capfd, "rows f32 5 nodes"
    )
    for columns in (40, 1, 7, 9000, 64, 40, 65, 0, 40):
        for rows in (1, 6, 0):
            mask = (3, 1, columns)
            feeds = used(nodes, row_feeds(random, (2, 3, rows, columns), mask, F32))
            check(session, nodes, feeds, constants, F32)


def test_large_rows_on_two_threads(capfd: Any) -> None:
    random = np.random.default_rng(4)
    nodes = chain(["mul", "keep"], "x")
    feeds = row_feeds(random, (4, 8, 200, 200), (200, 200), F32)
    checked(capfd, nodes, feeds, "rows f32 3 nodes", threads=2)


@pytest.mark.parametrize(
    ("columns", "steps", "is_claimed"),
    [
        (31, ["mul", "keep"], False),
        (32, ["mul", "keep"], True),
        (127, ["mul", "add"], False),
        (128, ["mul", "add"], True),
        (8192, ["mul", "add"], True),
        (8193, ["mul", "add"], False),
        (8193, ["mul", "keep"], True),
        (128, [], False),
    ],
)
def test_rows_that_do_not_pay_are_not_claimed(
    columns: int, steps: list[str], is_claimed: bool, capfd: Any
) -> None:
    random = np.random.default_rng(5)
    nodes = chain(steps, "x")
    feeds = row_feeds(random, (2, columns), (1, columns), F32)
    checked(capfd, nodes, feeds, *[f"rows f32 {len(nodes)} nodes"] * is_claimed)


@pytest.mark.parametrize(
    ("opset", "axis", "is_claimed"),
    [(11, 2, True), (11, -1, True), (11, 1, False), (13, 2, True), (13, 1, False)],
)
def test_only_a_softmax_along_the_last_dimension_is_fused(
    opset: int, axis: int, is_claimed: bool, capfd: Any
) -> None:
    """Before opset 13, a Softmax works over all dimensions from its axis on."""
    random = np.random.default_rng(6)
    nodes = chain(["mul", "keep"], "x")
    nodes[-1].attribute[0].i = axis
    constants = used(nodes, constants_of(F32, -9.0))
    feeds = used(nodes, row_feeds(random, (2, 3, 40), (3, 40), F32))
    feeds["x"] = normal(random, (2, 3, 40))
    model = make_model(nodes, feeds, F32, constants, opset=opset)
    session = fused_session(model, capfd, *["rows f32 3 nodes"] * is_claimed)
    stock = stock_session(model)
    got, wanted = (one.run(["o"], feeds)[0] for one in (session, stock))
    assert_close(got, wanted, F32)


def test_a_value_with_a_second_consumer_is_not_fused(capfd: Any) -> None:
    random = np.random.default_rng(7)
    nodes = [*chain(["mul", "keep"], "x", "w"), op("Add", "w", "w_0", "o")]
    feeds = row_feeds(random, (3, 40), (3, 40), F32)
    checked(capfd, nodes, feeds, "rows f32 2 nodes", constants=constants_of(F32, -9.0))


def test_a_value_that_is_an_output_is_not_fused(capfd: Any) -> None:
    random = np.random.default_rng(8)
    nodes = chain(["mul", "keep"], "x", zeros=True)
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, row_feeds(random, (3, 40), (3, 40), F32))
    outputs = ["o", "o_1", "o_weights"]
    model = make_model(nodes, feeds, F32, constants, outputs)
    session = fused_session(model, capfd)
    wanted = expected(nodes, feeds, constants)
    for name, got in zip(outputs, session.run(outputs, feeds), strict=True):
        finite = np.isfinite(wanted[name]) & np.isfinite(got)
        assert np.array_equal(np.isnan(got), np.isnan(wanted[name]))
        np.testing.assert_allclose(got[finite], wanted[name][finite], atol=1e-5)


def test_a_zero_that_adds_a_dimension_is_not_fused(capfd: Any) -> None:
    random = np.random.default_rng(22)
    nodes = chain(["mul", "keep"], "x", zeros=True)
    constants = constants_of(F32) | {"zero": np.zeros((1, 1, 1), "f")}
    feeds = row_feeds(random, (3, 40), (3, 40), F32)
    checked(capfd, nodes, feeds, "rows f32 3 nodes", constants=constants)


@pytest.mark.parametrize("zeros", [False, True])
def test_inside_if(zeros: bool, capfd: Any) -> None:
    """Both branches use the same names and read values from outside."""
    random = np.random.default_rng(9)
    forms = [["mul", "keep"], ["div", "mask", "add"]]
    branches = [chain(form, "x", "r", zeros) for form in forms]
    constants = used(branches[0] + branches[1], constants_of(F32))
    feeds = row_feeds(random, (2, 3, 40), (3, 40), F32)
    model = make_model([choice(*branches)], feeds | {"b": np.array(True)}, F32, constants)
    claims = [f"rows f32 {len(nodes)} nodes" for nodes in branches]
    capfd.readouterr()
    session = session_of(model, is_claimed=False, maskwise_verbose="1")
    lines = capfd.readouterr().err.splitlines()
    assert sorted(line.split(",")[3] for line in lines) == sorted(claims), lines
    for chosen, nodes in ((True, branches[0]), (False, branches[1])):
        (got,) = session.run(None, {"b": np.array(chosen), **feeds})
        assert_close(got, expected(nodes, feeds, constants)["r"], F32)


def test_a_value_read_inside_if_is_not_fused(capfd: Any) -> None:
    """A branch also reads the scaled scores, so the chain begins after the scaling."""
    random = np.random.default_rng(10)
    nodes = chain(["mul", "keep"], "x", "w")
    last = choice(*([op("Identity", read, "r")] for read in ("w_0", "w")))
    constants = used(nodes, constants_of(F32, -9.0))
    feeds = used(nodes, row_feeds(random, (3, 40), (3, 40), F32)) | {"b": np.array(False)}
    model = make_model([*nodes, last], feeds, F32, constants)
    session = fused_session(model, capfd, "rows f32 2 nodes")
    wanted = expected(nodes, feeds, constants)
    for chosen, name in ((True, "w_0"), (False, "w")):
        (got,) = session.run(["o"], {**feeds, "b": np.array(chosen)})
        finite = np.isfinite(wanted[name])
        np.testing.assert_allclose(got[finite], wanted[name][finite], atol=1e-5)


def test_inside_loop(capfd: Any) -> None:
    i64 = TensorProto.INT64
    random = np.random.default_rng(11)
    nodes = chain(["mul", "keep"], "v", "next", zeros=True)
    turn = helper.make_graph(
        [*nodes, op("Identity", "go", "on")],
        "turn",
        [value("i", i64, []), value("go", BOOL, []), value("v", F32, [None, None])],
        [value("on", BOOL, []), value("next", F32, [None, None])],
    )
    loop = op("Loop", "count", "", "x", "o", body=turn)
    constants = used(nodes, constants_of(F32))
    inputs = [value("count", i64, []), value("x", F32, [None, None]), value("c", BOOL, [None])]
    model = model_of([loop], inputs, [value("o", F32, None)], initializers(constants), 17)
    session = fused_session(model, capfd, "rows f32 5 nodes")
    x, cond = normal(random, (5, 40)), random.random(40) < 0.7
    wanted = x
    for _ in range(3):
        wanted = expected(nodes, {"v": wanted, "c": cond}, constants)["next"]
    (got,) = session.run(None, {"count": np.array(3), "x": x, "c": cond})
    assert_close(got, wanted, F32)


def test_a_loop_may_add_dimensions_to_its_state() -> None:
    """The body declares rank 2 for its state, which is true only in the first iteration."""
    i64 = TensorProto.INT64
    turn = helper.make_graph(
        [
            op("Div", "v", "eight", "scores"),
            op("Tanh", "scores", "capped"),
            op("Softmax", "capped", "weights", axis=1),
            op("IsNaN", "weights", "is_nan"),
            op("Where", "is_nan", "zero", "weights", "next"),
            op("Identity", "go", "on"),
        ],
        "turn",
        [value("i", i64, []), value("go", BOOL, []), value("v", F32, [None, None])],
        [value("on", BOOL, []), value("next", F32, None)],
    )
    loop = op("Loop", "count", "", "x", "o", body=turn)
    constants = {"zero": np.zeros((1, 1, 1), np.float32), "eight": np.array(8, np.float32)}
    inputs = [value("count", i64, []), value("x", F32, [1, 64])]
    model = model_of([loop], inputs, [value("o", F32, None)], initializers(constants), 21)
    feeds = {"count": np.array(2), "x": normal(np.random.default_rng(3), (1, 64))}
    (wanted,) = stock_session(model).run(None, feeds)
    (got,) = maskwise.onnxruntime.session(model).run(None, feeds)
    assert wanted.shape == (1, 1, 64)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_a_refused_where_refuses_its_chain(capfd: Any) -> None:
    """ONNX Runtime may fuse GPT-2's causal mask in opset 13. So Maskwise refuses the Where and the
    chain around the Softmax."""
    nodes = [
        op("Slice", "whole", "from", "to", "axis", "rows"),
        op("Slice", "rows", "from", "to", "axis", "mask"),
        op("Cast", "mask", "c", to=BOOL),
        *chain(["div", "keep"], "x"),
    ]
    i64 = TensorProto.INT64
    inputs = [value(name, i64, [1]) for name in ("from", "to", "axis")]
    inputs += [value("x", F32, [40, 40]), value("whole", TensorProto.UINT8, [40, 40])]
    constants = [
        helper.make_tensor(name, F32, [], [number])
        for name, number in (("root", 8.0), ("fill", -1e4))
    ]
    model = model_of(nodes, inputs, [value("o", F32, None)], constants, 13)
    session_of(model, is_claimed=False, maskwise_verbose="1")
    why = "the causal mask of ONNX Runtime's attention fusion"
    assert capfd.readouterr().err.splitlines() == [
        f"maskwise,refuse,softmax,rows f32 3 nodes,{why}",
        f"maskwise,refuse,,Where-9 f32,{why}",
    ]


def test_an_optimized_model_is_saved_only_without_fusion(tmp_path: Any) -> None:
    """ONNX Runtime does not save a model with nodes fused by a provider."""
    nodes = chain(["mul", "keep"], "x")
    feeds = used(nodes, row_feeds(np.random.default_rng(21), (3, 40), (3, 40), F32))
    model = make_model(nodes, feeds, F32, used(nodes, constants_of(F32)))
    for fuse in "10":
        session_options = options(maskwise_fuse=fuse)
        session_options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        fails = pytest.raises(Exception, match="compiled nodes") if fuse == "1" else nullcontext()
        with fails:
            maskwise.onnxruntime.session(model, session_options)
