"""Chains around a Softmax, and attention, as one node in ONNX Runtime."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnxruntime as ort
import pytest
from fused_models import (
    BOOL,
    F16,
    F32,
    Feeds,
    Node,
    assert_close,
    chain,
    constants_of,
    expected,
    fused_session,
    make_model,
    normal,
)
from onnx import TensorProto, helper
from where_models import model_of, options, providers_of, session_of, value

CHAINS = {
    "scale": ["mul", "mul_turned"],
    "scale and mask": ["div", "keep"],
    "other mask": ["mul_turned", "mask"],
    "bias": ["mul", "add"],
    "bias first": ["add_turned", "div", "keep"],
    "mask and bias": ["mul", "mask", "add"],
    "sub": ["sub", "keep"],
    "soft cap": ["div", "tanh", "mul", "add"],
}
# Of the mask or the bias, for scores {2,3,5,40}.
MASKS = [(2, 3, 5, 40), (1, 1, 5, 40), (2, 1, 1, 40), (5, 40), (40,), (2, 3, 5, 1), ()]


def feeds_of(random: np.random.Generator, shape: Any, mask: Any, element: int) -> Feeds:
    """Rows that are masked as a whole, of which one has a NaN, and scores of +infinity."""
    x = 4 * normal(random, shape, element)
    bias = normal(random, mask, element)
    cond = np.asarray(random.random(mask) < 0.7)
    if len(mask) > 1:
        cond[..., :1, :] = False
        bias[..., -1:, :] = -np.inf
    if x.size > 2:
        x.reshape(-1)[[0, x.size // 3, 2 * x.size // 3]] = np.nan, np.inf, -np.inf
    return {"x": x, "c": cond, "bias": bias}


def used(nodes: list[Node], arrays: Feeds) -> Feeds:
    names = {name for node in nodes for name in node.input}
    return {name: array for name, array in arrays.items() if name in names}


def check(session: Any, nodes: list[Node], feeds: Feeds, constants: Feeds, element: int) -> None:
    (got,) = session.run(["o"], feeds)
    assert_close(got, expected(nodes, feeds, constants)["o"], element)


@pytest.mark.parametrize("element", [F32, F16], ids=["f32", "f16"])
@pytest.mark.parametrize("zeros", [False, True], ids=["", "zeros"])
@pytest.mark.parametrize("form", CHAINS)
def test_rows(form: str, zeros: bool, element: int, capfd: Any) -> None:
    random = np.random.default_rng(1)
    nodes = chain(CHAINS[form], "x", zeros=zeros)
    constants = used(nodes, constants_of(element, -30.0 if form == "other mask" else -np.inf))
    for mask in MASKS:
        feeds = used(nodes, feeds_of(random, (2, 3, 5, 40), mask, element))
        opened = {name: [None] * array.ndim for name, array in feeds.items()}
        model = make_model(nodes, feeds, element, constants, shapes=opened)
        text = f"rows {'f32' if element == F32 else 'f16'} {len(nodes)} nodes"
        session = fused_session(model, capfd, text)
        check(session, nodes, feeds, constants, element)


@pytest.mark.parametrize("shape", [(1, 3, 1, 40), (3, 5, 40), (2, 3, 5, 1), (40,), (1,)])
def test_scores_that_are_broadcast(shape: tuple[int, ...], capfd: Any) -> None:
    """By the mask, to {2,3,5,40}."""
    random = np.random.default_rng(2)
    nodes = chain(["mul", "keep", "add"], "x")
    constants = used(nodes, constants_of(F32, -5.0))
    feeds = feeds_of(random, (2, 3, 5, 40), (2, 3, 5, 40), F32)
    feeds["x"] = normal(random, shape)
    opened = {"x": [None] * len(shape), "c": [None] * 4, "bias": [None] * 4}
    model = make_model(nodes, feeds, F32, constants, shapes=opened)
    check(fused_session(model, capfd, "rows f32 4 nodes"), nodes, feeds, constants, F32)


def test_shapes_change_from_run_to_run(capfd: Any) -> None:
    random = np.random.default_rng(3)
    nodes = chain(["mul", "keep"], "x", zeros=True)
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, feeds_of(random, (2, 3, 4, 40), (3, 4, 40), F32))
    opened: dict[str, Any] = {"x": ["b", "h", "s", "t"], "c": [None] * 3}
    session = fused_session(
        make_model(nodes, feeds, F32, constants, shapes=opened), capfd, "rows f32 5 nodes"
    )
    for columns in (40, 1, 7, 9000, 64, 40, 65, 0, 40):
        for rows in (1, 6, 0):
            mask = (3, 1, columns)
            feeds = used(nodes, feeds_of(random, (2, 3, rows, columns), mask, F32))
            check(session, nodes, feeds, constants, F32)


def test_large_rows_on_two_threads(capfd: Any) -> None:
    random = np.random.default_rng(4)
    nodes = chain(["mul", "keep"], "x")
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, feeds_of(random, (4, 8, 200, 200), (200, 200), F32))
    model = make_model(nodes, feeds, F32, constants)
    check(fused_session(model, capfd, "rows f32 3 nodes", threads=2), nodes, feeds, constants, F32)


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
def test_rows_that_do_not_pay_stay(
    columns: int, steps: list[str], is_claimed: bool, capfd: Any
) -> None:
    random = np.random.default_rng(5)
    nodes = chain(steps, "x")
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, feeds_of(random, (2, columns), (1, columns), F32))
    claims = [f"rows f32 {len(nodes)} nodes"] if is_claimed else []
    session = fused_session(make_model(nodes, feeds, F32, constants), capfd, *claims)
    check(session, nodes, feeds, constants, F32)


@pytest.mark.parametrize(
    ("opset", "axis", "is_claimed"),
    [(11, 2, True), (11, -1, True), (11, 1, False), (13, 2, True), (13, 1, False)],
)
def test_along_the_last_dimension_only(opset: int, axis: int, is_claimed: bool, capfd: Any) -> None:
    """Before opset 13 a Softmax works along all dimensions from its axis on."""
    random = np.random.default_rng(6)
    nodes = chain(["mul", "keep"], "x")
    nodes[-1].attribute[0].i = axis
    constants = used(nodes, constants_of(F32, -9.0))
    feeds = used(nodes, feeds_of(random, (2, 3, 40), (3, 40), F32))
    feeds["x"] = normal(random, (2, 3, 40))
    model = make_model(nodes, feeds, F32, constants, opset=opset)
    session = fused_session(model, capfd, *["rows f32 3 nodes"] * is_claimed)
    stock = ort.InferenceSession(model, options(), providers=["CPUExecutionProvider"])
    got, wanted = (one.run(["o"], feeds)[0] for one in (session, stock))
    assert_close(got, wanted, F32)


def test_a_value_with_a_second_reader_stays(capfd: Any) -> None:
    random = np.random.default_rng(7)
    nodes = [*chain(["mul", "keep"], "x", "w"), helper.make_node("Add", ["w", "w_0"], ["o"])]
    constants = used(nodes, constants_of(F32, -9.0))
    feeds = used(nodes, feeds_of(random, (3, 40), (3, 40), F32))
    model = make_model(nodes, feeds, F32, constants)
    check(fused_session(model, capfd, "rows f32 2 nodes"), nodes, feeds, constants, F32)


def test_a_value_that_leaves_the_graph_stays(capfd: Any) -> None:
    random = np.random.default_rng(8)
    nodes = chain(["mul", "keep"], "x", zeros=True)
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, feeds_of(random, (3, 40), (3, 40), F32))
    outputs = ["o", "o_1", "o_weights"]
    model = make_model(nodes, feeds, F32, constants, outputs)
    session = fused_session(model, capfd)
    wanted = expected(nodes, feeds, constants)
    for name, got in zip(outputs, session.run(outputs, feeds), strict=True):
        finite = np.isfinite(wanted[name]) & np.isfinite(got)
        assert np.array_equal(np.isnan(got), np.isnan(wanted[name]))
        np.testing.assert_allclose(got[finite], wanted[name][finite], atol=1e-5)


def branch(name: str, nodes: list[Node], result: str) -> Any:
    return helper.make_graph(nodes, name, [], [value(result, F32, None)])


@pytest.mark.parametrize("zeros", [False, True])
def test_inside_if(zeros: bool, capfd: Any) -> None:
    """Both branches use the same names, and read values from outside."""
    random = np.random.default_rng(9)
    forms = [["mul", "keep"], ["div", "mask", "add"]]
    branches = [chain(form, "x", "r", zeros) for form in forms]
    choice = helper.make_node(
        "If",
        ["b"],
        ["o"],
        then_branch=branch("then", branches[0], "r"),
        else_branch=branch("else", branches[1], "r"),
    )
    constants = used(branches[0] + branches[1], constants_of(F32))
    feeds = feeds_of(random, (2, 3, 40), (3, 40), F32)
    inputs = [value(n, BOOL if a.dtype == bool else F32, a.shape) for n, a in feeds.items()]
    inputs.append(value("b", BOOL, []))
    initializers = [
        helper.make_tensor(name, F32, [], [float(number)]) for name, number in constants.items()
    ]
    model = model_of([choice], inputs, [value("o", F32, None)], initializers, 17)
    claims = [f"rows f32 {len(nodes)} nodes" for nodes in branches]
    capfd.readouterr()
    session = session_of(model, is_claimed=False, maskwise_verbose="1")
    lines = capfd.readouterr().err.splitlines()
    assert sorted(line.split(",")[3] for line in lines) == sorted(claims), lines
    for chosen, nodes in ((True, branches[0]), (False, branches[1])):
        (got,) = session.run(None, {"b": np.array(chosen), **feeds})
        assert_close(got, expected(nodes, feeds, constants)["r"], F32)


def test_a_value_read_inside_if_stays(capfd: Any) -> None:
    """The scaled scores are read by a branch, too: the chain begins behind them."""
    random = np.random.default_rng(10)
    nodes = chain(["mul", "keep"], "x", "w")
    branches = [
        branch(name, [helper.make_node("Identity", [read], ["r"])], "r")
        for name, read in (("then", "w_0"), ("else", "w"))
    ]
    choice = helper.make_node("If", ["b"], ["o"], then_branch=branches[0], else_branch=branches[1])
    constants = used(nodes, constants_of(F32, -9.0))
    feeds = used(nodes, feeds_of(random, (3, 40), (3, 40), F32)) | {"b": np.array(False)}
    model = make_model([*nodes, choice], feeds, F32, constants)
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
        [*nodes, helper.make_node("Identity", ["go"], ["on"])],
        "turn",
        [value("i", i64, []), value("go", BOOL, []), value("v", F32, [None, None])],
        [value("on", BOOL, []), value("next", F32, [None, None])],
    )
    loop = helper.make_node("Loop", ["count", "", "x"], ["o"], body=turn)
    constants = used(nodes, constants_of(F32))
    inputs = [value("count", i64, []), value("x", F32, [None, None]), value("c", BOOL, [None])]
    initializers = [
        helper.make_tensor(name, F32, [], [float(number)]) for name, number in constants.items()
    ]
    model = model_of([loop], inputs, [value("o", F32, None)], initializers, 17)
    session = fused_session(model, capfd, "rows f32 5 nodes")
    x, cond = normal(random, (5, 40)), random.random(40) < 0.7
    wanted = x
    for _ in range(3):
        wanted = expected(nodes, {"v": wanted, "c": cond}, constants)["next"]
    (got,) = session.run(None, {"count": np.array(3), "x": x, "c": cond})
    assert_close(got, wanted, F32)


def sdpa(masked: str, batch_first: bool = False) -> list[Node]:
    """scaled_dot_product_attention as exporters write it: query and key are scaled apart."""
    heads = [helper.make_node("Transpose", [one], [f"{one}h"], perm=[0, 2, 1, 3]) for one in "qv"]
    perm = [0, 2, 3, 1] if batch_first else [0, 1, 3, 2]
    nodes = heads if batch_first else []
    q, v = ("qh", "vh") if batch_first else ("q", "v")
    nodes += [
        helper.make_node("Transpose", ["k"], ["turned"], perm=perm),
        helper.make_node("Mul", [q, "half"], ["qs"]),
        helper.make_node("Mul", ["turned", "half"], ["ks"]),
        helper.make_node("MatMul", ["qs", "ks"], ["scores"]),
        *chain([masked] if masked else [], "scores", "w", zeros=True),
        helper.make_node("MatMul", ["w", v], ["back" if batch_first else "o"]),
    ]
    if batch_first:
        nodes.append(helper.make_node("Transpose", ["back"], ["o"], perm=[0, 2, 1, 3]))
    return nodes


def masked_fill(batch_first: bool = False) -> list[Node]:
    nodes = sdpa("", batch_first)
    kept = [
        one for one in nodes if one.op_type not in ("Mul", "IsNaN", "Where", "Softmax", "MatMul")
    ]
    moved = [one for one in kept if one.output[0] != "o"]
    last = [one for one in kept if one.output[0] == "o"]
    q, v = ("qh", "vh") if batch_first else ("q", "v")
    return [
        *moved,
        helper.make_node("MatMul", [q, "turned"], ["scores"]),
        *chain(["div", "keep"], "scores", "w"),
        helper.make_node("MatMul", ["w", v], ["back" if batch_first else "o"]),
        *last,
    ]


def attention_feeds(
    random: np.random.Generator, query: Any, key: Any, mask: Any, batch_first: bool = False
) -> Feeds:
    """Shapes are {batch, heads, rows, depth}. Each row keeps its first key."""
    feeds = {"q": normal(random, query), "k": normal(random, key), "v": normal(random, key)}
    if batch_first:
        feeds = {name: np.ascontiguousarray(a.swapaxes(1, 2)) for name, a in feeds.items()}
    cond = np.asarray(random.random(mask) < 0.7)
    cond[..., :1] = True
    return {**feeds, "c": cond, "bias": np.where(cond, 0, -np.inf).astype("f")}


def attention_constants() -> Feeds:
    return {**constants_of(F32), "half": np.array(16**-0.25, np.float32)}


FORMS: dict[str, tuple[list[Node], str]] = {
    "sdpa": (sdpa("add"), "attention f32 9 nodes"),
    "sdpa of heads inside": (sdpa("add", batch_first=True), "attention f32 12 nodes"),
    "masked_fill": (masked_fill(), "attention f32 6 nodes"),
    "masked_fill of heads inside": (masked_fill(batch_first=True), "attention f32 9 nodes"),
    "no mask": (sdpa(""), "attention f32 8 nodes"),
}


@pytest.mark.parametrize("form", FORMS)
def test_attention(form: str, capfd: Any) -> None:
    """One session for all shapes."""
    random = np.random.default_rng(12)
    nodes, claim = FORMS[form]
    inside = "inside" in form
    constants = used(nodes, attention_constants())
    session = None
    for query, key, mask in (
        ((2, 3, 5, 16), (2, 3, 7, 16), (2, 1, 1, 7)),
        ((1, 2, 70, 16), (1, 2, 130, 16), (1, 1, 70, 130)),
        ((2, 4, 1, 16), (2, 4, 300, 16), (2, 1, 1, 300)),
        ((2, 3, 5, 16), (2, 3, 7, 16), (2, 3, 5, 7)),
        ((2, 3, 5, 16), (1, 1, 7, 16), (1, 3, 1, 7)),
        ((1, 3, 1, 16), (1, 3, 7, 16), (2, 1, 5, 7)),  # the mask has more rows and batches
        ((1, 3, 5, 16), (1, 3, 1, 16), (1, 1, 5, 1)),
        ((0, 3, 5, 16), (0, 3, 7, 16), (1, 1, 5, 7)),
        ((2, 3, 0, 16), (2, 3, 7, 16), (1, 1, 1, 7)),
    ):
        feeds = used(nodes, attention_feeds(random, query, key, mask, inside))
        if session is None:
            opened: dict[str, Any] = {name: [None] * 4 for name in feeds}
            for name in "qkv":
                opened[name] = [None, None, None, 16]
            model = make_model(nodes, feeds, F32, constants, shapes=opened)
            session = fused_session(model, capfd, claim)
        check(session, nodes, feeds, constants, F32)


@pytest.mark.parametrize("zeros", [False, True])
def test_rows_without_a_key_that_counts(zeros: bool, capfd: Any) -> None:
    """NaN, as the definition has it, or zeros."""
    random = np.random.default_rng(13)
    nodes = sdpa("add") if zeros else masked_fill()
    constants = used(nodes, attention_constants())
    feeds = attention_feeds(random, (2, 3, 5, 16), (2, 3, 70, 16), (2, 1, 5, 70))
    feeds["c"][:, :, 2] = False
    feeds["bias"][:, :, 2] = -np.inf
    feeds = used(nodes, feeds)
    claim = f"attention f32 {9 if zeros else 6} nodes"
    session = fused_session(make_model(nodes, feeds, F32, constants), capfd, claim)
    check(session, nodes, feeds, constants, F32)
    (got,) = session.run(["o"], feeds)
    assert (got[:, :, 2] == 0).all() if zeros else np.isnan(got[:, :, 2]).all()


def test_attention_without_keys(capfd: Any) -> None:
    random = np.random.default_rng(14)
    nodes = masked_fill()
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 5, 16), (1, 2, 0, 16), (1, 1, 5, 0)))
    session = fused_session(
        make_model(nodes, feeds, F32, constants), capfd, "attention f32 6 nodes"
    )
    (got,) = session.run(["o"], feeds)
    assert got.shape == (1, 2, 5, 16) and (got == 0).all()


def test_attention_with_a_soft_cap(capfd: Any) -> None:
    random = np.random.default_rng(15)
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        *chain(["div", "tanh", "mul", "add"], "scores", "w"),
        helper.make_node("MatMul", ["w", "v"], ["o"]),
    ]
    constants = used(nodes, constants_of(F32))
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, 16), (1, 2, 33, 16), (1, 1, 9, 33)))
    feeds["k"] = np.ascontiguousarray(feeds["k"].swapaxes(2, 3))
    session = fused_session(
        make_model(nodes, feeds, F32, constants), capfd, "attention f32 7 nodes"
    )
    check(session, nodes, feeds, constants, F32)


@pytest.mark.parametrize(
    ("depth", "masked", "claim"),
    [
        (64, "", "attention f32 8 nodes"),
        (65, "", "rows f32 3 nodes"),
        (128, "add", "attention f32 9 nodes"),
        (129, "add", "rows f32 4 nodes"),
    ],
)
def test_where_attention_does_not_pay_rows_are_left(
    depth: int, masked: str, claim: str, capfd: Any
) -> None:
    random = np.random.default_rng(16)
    nodes = sdpa(masked)
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, depth), (1, 2, 140, depth), (9, 140)))
    session = fused_session(make_model(nodes, feeds, F32, constants), capfd, claim)
    check(session, nodes, feeds, constants, F32)


@pytest.mark.parametrize("read", ["turned", "qs", "scores", "w", "w_0"])
def test_a_second_reader_inside_attention(read: str, capfd: Any) -> None:
    """What it reads is made as before, and what is claimed ends there."""
    random = np.random.default_rng(17)
    nodes = [*sdpa("add"), helper.make_node("Tanh", [read], ["second"])]
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, 16), (1, 2, 140, 16), (9, 140)))
    claim = {
        "turned": "attention f32 8 nodes",
        "qs": "attention f32 8 nodes",
        "scores": "rows f32 4 nodes",
        "w": "rows f32 4 nodes",
        "w_0": "rows f32 3 nodes",
    }[read]
    model = make_model(nodes, feeds, F32, constants, ["o", "second"])
    session = fused_session(model, capfd, claim)
    wanted = expected(nodes, feeds, constants)
    for name, got in zip(("o", "second"), session.run(["o", "second"], feeds), strict=True):
        assert_close(got, wanted[name], F32)


def test_without_fusion(capfd: Any) -> None:
    """Only Where is claimed: the same bits as ONNX Runtime's, but for -0."""
    random = np.random.default_rng(18)
    nodes = masked_fill()
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, 16), (1, 2, 70, 16), (9, 70)))
    model = make_model(nodes, feeds, F32, constants)
    session = session_of(model, maskwise_fuse="0", maskwise_verbose="1")
    assert [line.split(",")[3] for line in capfd.readouterr().err.splitlines()] == ["Where-16 f32"]
    stock = ort.InferenceSession(model, options(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, feeds)[0], stock.run(None, feeds)[0])
    with pytest.raises(RuntimeError, match=r"maskwise.fuse is 'yes', expected 0 or 1"):
        session_of(model, maskwise_fuse="yes")


def test_a_where_that_is_left_alone_takes_its_group_along(capfd: Any) -> None:
    """GPT-2's causal mask in opset 13, which ONNX Runtime's fusion may want."""
    nodes = [
        helper.make_node("Slice", ["whole", "from", "to", "axis"], ["rows"]),
        helper.make_node("Slice", ["rows", "from", "to", "axis"], ["mask"]),
        helper.make_node("Cast", ["mask"], ["c"], to=BOOL),
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


@pytest.mark.parametrize(
    ("nodes", "wrong", "texts"),
    [
        (chain(["mul", "keep"], "x"), {"c": (4, 40)}, ["softmax", "{3,40}", "{4,40}"]),
        (masked_fill(), {"c": (1, 1, 9, 71)}, ["softmax", "{1,2,9,70}", "{1,1,9,71}"]),
        (masked_fill(), {"k": (1, 2, 70, 17)}, ["attention", "{1,2,9,16}", "{1,2,70,17}"]),
        (masked_fill(), {"v": (1, 2, 71, 16)}, ["attention", "{1,2,70,16}", "{1,2,71,16}"]),
        (masked_fill(), {"v": (1, 3, 70, 16)}, ["softmax", "{1,2,9,16}", "{1,3,70,16}"]),
    ],
    ids=["rows", "mask", "depth", "keys", "heads"],
)
def test_shapes_that_do_not_fit(
    nodes: list[Node], wrong: dict[str, Any], texts: list[str], capfd: Any
) -> None:
    random = np.random.default_rng(19)
    constants = used(nodes, attention_constants())
    feeds = attention_feeds(random, (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70))
    if "x" in nodes[0].input:
        feeds = feeds_of(random, (3, 40), (3, 40), F32)
    feeds = used(nodes, feeds)
    opened = {name: [None] * array.ndim for name, array in feeds.items()}
    session = session_of(make_model(nodes, feeds, F32, constants, shapes=opened), is_claimed=False)
    bad = {
        name: np.ones(wrong[name], array.dtype) if name in wrong else array
        for name, array in feeds.items()
    }
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument) as refusal:
        session.run(None, bad)
    for text in texts:
        assert text in str(refusal.value)
    check(session, nodes, feeds, constants, F32)


def test_sessions_and_threads_at_once() -> None:
    nodes = sdpa("add", batch_first=True)
    constants = used(nodes, attention_constants())

    def draw(seed: int) -> Feeds:
        random = np.random.default_rng(seed)
        rows, keys = (int(n) for n in random.integers(1, 150, 2))
        shapes = (2, 3, rows, 16), (2, 3, keys, 16), (2, 1, rows, keys)
        return used(nodes, attention_feeds(random, *shapes, batch_first=True))

    feeds = draw(0)
    opened: dict[str, Any] = {name: [None, None, None, 16] for name in "qkv"}
    opened["bias"] = [None] * 4
    model = make_model(nodes, feeds, F32, constants, shapes=opened)
    sessions = [session_of(model, threads, is_claimed=False) for threads in (1, 2, 2)]

    def work(seed: int) -> None:
        for turn in range(30):
            feeds = draw(100 * seed + turn % 12)
            check(sessions[(seed + turn) % 3], nodes, feeds, constants, F32)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))  # passes on what one of them throws


def test_fused_nodes_are_listed() -> None:
    """Where nodes inside count as Maskwise's, for the report too."""
    nodes = masked_fill()
    feeds = used(
        nodes, attention_feeds(np.random.default_rng(20), (1, 2, 9, 16), (1, 2, 70, 16), (9, 70))
    )
    session = session_of(make_model(nodes, feeds, F32, used(nodes, attention_constants())))
    assert providers_of(session) == ["MaskwiseExecutionProvider"]
    assert providers_of(session, "MatMul") == ["MaskwiseExecutionProvider"] * 2


def test_an_optimized_model_needs_no_fusion(tmp_path: Any) -> None:
    """ONNX Runtime does not write a model of which nodes were fused by a provider."""
    nodes = chain(["mul", "keep"], "x")
    feeds = used(nodes, feeds_of(np.random.default_rng(21), (3, 40), (3, 40), F32))
    model = make_model(nodes, feeds, F32, used(nodes, constants_of(F32)))
    for fuse in "10":
        given = options(maskwise_fuse=fuse)
        given.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        fails = pytest.raises(Exception, match="compiled nodes") if fuse == "1" else nullcontext()
        with fails:
            maskwise.onnxruntime.session(model, given)
