"""Unusual models that run in ONNX Runtime also run with Maskwise.

Attributes are unusual, values have no consumer or no name, or declared shapes are wrong.
"""

from __future__ import annotations

from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnx
import pytest
from fused_models import (
    BOOL,
    F16,
    F32,
    Feeds,
    Node,
    assert_close,
    attention_constants,
    attention_feeds,
    chain,
    constants_of,
    expected,
    fused_session,
    initializers,
    make_model,
    masked_fill,
    normal,
    reshaped,
    row_feeds,
    sdpa,
    used,
)
from onnx import TensorProto, helper, numpy_helper
from onnx_where import choice, model_of, op, value
from where_models import providers_of, session_of, stock_session

I64 = TensorProto.INT64
MASKWISE = maskwise.onnxruntime.PROVIDER


def outcome(session: Any, feeds: Feeds) -> list[Any] | None:
    """Returns the outputs, or None if the session raises an error."""
    try:
        return list(session.run(None, feeds))
    except Exception:
        return None


def both(model: bytes, feeds: Feeds) -> tuple[list[Any] | None, list[Any] | None]:
    """Returns outcomes without and with Maskwise. None: the session cannot be created or run."""
    outcomes = []
    for make in (
        lambda: stock_session(model),
        lambda: session_of(model, is_claimed=False),
    ):
        try:
            session = make()
        except Exception:
            outcomes.append(None)
            continue
        outcomes.append(outcome(session, feeds))
    return outcomes[0], outcomes[1]


def assert_alike(model: bytes, feeds: Feeds) -> None:
    alone, with_maskwise = both(model, feeds)
    assert (alone is None) == (with_maskwise is None), (alone, with_maskwise)
    for got, wanted in zip(with_maskwise or [], alone or [], strict=True):
        assert_close(got, wanted, F32)


ROWS = chain(["mul", "keep"], "x", "w", zeros=True)
ATTENTION = masked_fill(batch_first=True)


def rows_model(more: list[Node], outputs: list[Any], nodes: list[Node] = ROWS) -> bytes:
    constants = initializers(used(nodes, constants_of(F32)))
    inputs = [value("x", F32, [3, 40]), value("c", BOOL, [3, 40])]
    return model_of([*nodes, *more], inputs, outputs, constants, 17)


ROW_FEEDS = used(ROWS, row_feeds(np.random.default_rng(1), (3, 40), (3, 40), F32))


@pytest.mark.parametrize("zeros", [False, True])
def test_rows_without_a_consumer(zeros: bool, capfd: Any) -> None:
    """Nothing is fused, because the fused node would have no output."""
    nodes = chain(["mul", "keep"], "x", "w", zeros=zeros)
    model = rows_model([op("Neg", "x", "o")], [value("o", F32, None)], nodes)
    session_of(model, is_claimed=False, maskwise_verbose="1")
    text = f"maskwise,refuse,softmax,rows f32 {len(nodes)} nodes,its result is unused"
    assert text in capfd.readouterr().err.splitlines()
    assert_alike(model, ROW_FEEDS)


# A model's functions named like operators: name, number of inputs, and nodes.
FUNCTIONS: dict[str, tuple[str, int, list[Node]]] = {
    "Tanh": ("Tanh", 1, [op("Add", "i0", "i0", "r")]),
    "Mul": ("Mul", 2, [op("Sub", "i0", "i1", "r")]),
    "Mul of three inputs": ("Mul", 3, [op("Sum", "i0", "i1", "i2", "r")]),
    "Where of one input": ("Where", 1, [op("Neg", "i0", "r")]),
    "Where of three inputs": ("Where", 3, [op("Sum", "i0", "i1", "i2", "r")]),
    "Softmax": ("Softmax", 1, [op("Neg", "i0", "r")]),
    "Softmax without inputs": ("Softmax", 0, [op("Constant", "r", value_float=2.0)]),
    "Transpose without inputs": ("Transpose", 0, [op("Constant", "r", value_float=2.0)]),
}


@pytest.mark.parametrize("steps", [["keep", "add"], ["keep"], []], ids="_".join)
@pytest.mark.parametrize("form", FUNCTIONS)
def test_functions_with_names_of_operators(form: str, steps: list[str]) -> None:
    """A model calls a function before a Softmax. The function has an operator's name."""
    name, count, body = FUNCTIONS[form]
    call = helper.make_node(name, ["s"] * count, ["f"], domain="com.microsoft")
    nodes = [op("Where", "c", "x", "fill", "s"), call]
    nodes += chain(steps, "f") if count else [op("Add", "f", "s", "g"), *chain(steps, "g")]
    random = np.random.default_rng(8)
    feeds: Feeds = {one: normal(random, (3, 40)) for one in ("x", "bias")}
    feeds["c"] = random.random((3, 40)) < 0.7
    constants = used(nodes, constants_of(F32, -1.0))
    model = onnx.load_from_string(make_model(nodes, used(nodes, feeds), F32, constants))
    inputs, imports = [f"i{n}" for n in range(count)], [helper.make_opsetid("", 17)]
    function = helper.make_function("com.microsoft", name, inputs, ["r"], body, imports)
    model.functions.append(function)
    alone, with_maskwise = both(model.SerializeToString(), used(nodes, feeds))
    assert alone is not None and with_maskwise is not None
    assert_close(with_maskwise[0], alone[0], F32)


@pytest.mark.parametrize("nodes", [masked_fill(), ATTENTION], ids=["product", "transposed"])
def test_attention_without_a_consumer(nodes: list[Node], capfd: Any) -> None:
    constants = used(nodes, attention_constants())
    shapes = (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70)
    feeds = attention_feeds(np.random.default_rng(2), *shapes, nodes is ATTENTION)
    last = [*nodes[:-1], helper.make_node(nodes[-1].op_type, nodes[-1].input, ["unread"])]
    last[-1].attribute.extend(nodes[-1].attribute)
    last.append(op("Neg", "q", "o"))
    model = make_model(last, used(nodes, feeds), F32, constants)
    fused_session(model, capfd)
    assert_alike(model, used(nodes, feeds))


def test_a_result_that_only_a_branch_reads(capfd: Any) -> None:
    last = choice(*([op("Identity", read, "r")] for read in ("w", "x")))
    constants = used(ROWS, constants_of(F32))
    for chosen in (True, False):
        feeds = {**ROW_FEEDS, "b": np.array(chosen)}
        model = make_model([*ROWS, last], feeds, F32, constants)
        fused_session(model, capfd, "rows f32 5 nodes")
        assert_alike(model, feeds)


def test_a_result_that_is_two_outputs(capfd: Any) -> None:
    """ONNX Runtime accepts a list with the same output twice."""
    model = rows_model([], [value("w", F32, None)] * 2)
    fused_session(model, capfd, "rows f32 5 nodes")
    assert_alike(model, ROW_FEEDS)


@pytest.mark.parametrize("place", range(4))
def test_values_without_a_name(place: int) -> None:
    """A Where with an unnamed input or output, before a Softmax."""
    names = ["c", "x", "y", "o"]
    names[place] = ""
    inputs = [value("c", BOOL, [3, 40]), value("x", F32, [3, 40]), value("y", F32, [3, 40])]
    nodes = [
        helper.make_node("Where", names[:3], names[3:], name="where"),
        op("Softmax", "o" if place < 3 else "x", "w", axis=-1),
        op("Neg", "x", "n"),
    ]
    outputs = [value("w", F32, None), value("n", F32, None)]
    feeds = {**ROW_FEEDS, "y": ROW_FEEDS["x"]}
    assert_alike(model_of(nodes, inputs, outputs, opset=17), feeds)


PERMS = [
    [0, 1, 3, 100_000],
    [0, 1, 3, -(2**40)],
    [0, 1, 3, -1],
    [0, 1, 3, 4],
    [0, 1, 3, 3],
    [0, 1, 3, 2, 4],
    [0, 1, 2],
    list(range(100)),
    [],
]


@pytest.mark.parametrize("which", ["transposed", "qh", "vh", "o"])
@pytest.mark.parametrize("perm", PERMS, ids=lambda perm: "_".join(map(str, perm[:5])))
def test_wrong_transposes(perm: list[int], which: str) -> None:
    """If the input's shape is unknown, `perm` is checked only when the model runs."""
    nodes = [Node.FromString(node.SerializeToString()) for node in ATTENTION]
    (changed,) = (node for node in nodes if node.output[0] == which)
    changed.attribute[0].CopyFrom(helper.make_attribute("perm", perm, attr_type=7))
    constants = used(nodes, attention_constants())
    shapes = (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70)
    feeds = attention_feeds(np.random.default_rng(3), *shapes, batch_first=True)
    known = {"transposed": [1, 2, 16, 70], "qh": [1, 2, 9, 16], "vh": [1, 2, 70, 16]}
    feeds = used(nodes, feeds)
    opened: dict[str, Any] = {name: None for name in changed.input if name in feeds}
    assert_alike(make_model(nodes, feeds, F32, constants, shapes=opened, inner_values=known), feeds)


@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (17, 1), (17, -1)])
@pytest.mark.parametrize("shape", [(3, 40), (3, 2, 20), (40,), ()], ids=len)
def test_an_input_of_another_rank_than_declared(
    opset: int, axis: int, shape: Any, capfd: Any
) -> None:
    """The input's rank may differ from the declared 2. Runs raise an error or return a correct
    result."""
    nodes = chain(["mul", "add"], "x")
    nodes[-1].attribute[0].i = axis
    constants = used(nodes, constants_of(F32))
    feeds: Feeds = {"x": normal(np.random.default_rng(4), (3, 128)), "bias": np.ones((), "f")}
    model = reshaped(nodes, feeds, constants, "x", opset)
    session = fused_session(model, capfd, "rows f32 3 nodes")
    whole = normal(np.random.default_rng(5), shape)
    inputs = {"whole": whole, "shape": np.array(shape, np.int64), "bias": feeds["bias"]}
    got = outcome(session, inputs)
    if len(shape) == 2 or (axis < 0 and shape):
        assert got is not None
        assert_close(got[0], expected(nodes, {**feeds, "x": whole}, constants)["o"], F32)
    elif axis < 0:
        assert got == [1]  # a row of one element
    else:
        assert got is None


def test_a_number_with_too_many_dimensions_is_refused() -> None:
    nodes = sdpa("add")
    constants = used(nodes, attention_constants())
    shapes = (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70)
    feeds = used(nodes, attention_feeds(np.random.default_rng(6), *shapes))
    session = session_of(reshaped(nodes, feeds, constants, "half", 17), is_claimed=False)
    half = constants["half"].reshape(1)
    session.run(None, {**feeds, "whole": half, "shape": np.ones(4, np.int64)})
    with pytest.raises(
        Exception, match=r"\{1,1,1,1,1\}, but the model says one element of at most 4"
    ):
        session.run(None, {**feeds, "whole": half, "shape": np.ones(5, np.int64)})


@pytest.mark.parametrize("rank", [64, 65])
@pytest.mark.parametrize("fuse", "01")
def test_more_dimensions_than_maskwise_supports(rank: int, fuse: str) -> None:
    """ONNX Runtime runs a Where of more than 64 dimensions and its Softmax."""
    nodes = [op("Reshape", one, "shape", f"{one}_long") for one in "cx"]
    nodes += [op("Where", "c_long", "x_long", "fill", "s"), op("Softmax", "s", "p", axis=-1)]
    nodes += [op("Reshape", "p", "flat", "o")]
    constants = {"shape": np.array([1] * (rank - 1) + [40]), "flat": np.array([-1])}
    constants["fill"] = np.array(-1, "f")
    feeds: Feeds = {name: array[1] for name, array in ROW_FEEDS.items()}
    feeds["x"] = normal(np.random.default_rng(10), (40,))
    model = make_model(nodes, feeds, F32, constants)
    session = session_of(model, is_claimed=False, maskwise_fuse=fuse)
    assert (providers_of(session)[-1:] == [MASKWISE]) == (rank <= 64)
    assert_alike(model, feeds)


SQUARE = op("Mul", "x", "x", "m")  # 300 * 300, which is infinite in f16
# Operators before a Where, and whether Maskwise claims the Where.
F16_PATHS: dict[str, tuple[list[Node], bool]] = {
    "an Identity": ([SQUARE, op("Identity", "m", "v")], False),
    "one operator that moves": ([SQUARE, op("Reshape", "m", "shape", "v")], False),
    "two operators that move": (
        [SQUARE, op("Reshape", "m", "shape", "r"), op("Transpose", "r", "v", perm=[1, 0])],
        True,
    ),
    "a Concat with a constant": ([SQUARE, op("Concat", "m", "ones", "v", axis=0)], False),
    "a Concat with an input": ([SQUARE, op("Concat", "m", "x", "v", axis=0)], False),
    "a Where": ([SQUARE, op("Where", "c", "m", "zero", "v")], False),
    "casts of the model": (
        [SQUARE, op("Cast", "m", "f", to=F32), op("Cast", "f", "v", to=F16)],
        False,
    ),
    "an input": ([op("Identity", "x", "v")], True),
    "a Where of inputs": ([op("Where", "c", "x", "zero", "v")], True),
    "a graph output": ([SQUARE, op("Reshape", "m", "shape", "v")], True),
}


@pytest.mark.parametrize("fuse", "01")
@pytest.mark.parametrize("form", F16_PATHS)
def test_f16_overflows_only_where_onnx_runtime_does(form: str, fuse: str) -> None:
    """ONNX Runtime computes in f32 and removes adjacent casts. Maskwise would round a Where's
    inputs to f16, so Maskwise refuses a Where whose inputs ONNX Runtime keeps in f32."""
    path, is_claimed = F16_PATHS[form]
    nodes = [*path, op("Where", "all", "v", "zero", "w"), op("Mul", "w", "tiny", "o")]
    outputs = ["o", "v"] if form == "a graph output" else ["o"]
    constants = {
        "zero": np.array(0, "e"),
        "tiny": np.array(1e-3, "e"),
        "ones": np.ones((1, 64), "e"),
        "all": np.ones((), "?"),
        "shape": np.array([64, 2]),
    }
    model = model_of(
        nodes,
        [value("x", F16, [2, 64]), value("c", BOOL, [2, 64])],
        [value(name, F16, None) for name in outputs],
        initializers(used(nodes, constants)),
        17,
    )
    feeds = {"x": np.full((2, 64), 300, "e"), "c": np.ones((2, 64), "?")}
    stock = stock_session(model)
    session = session_of(model, is_claimed=False, maskwise_fuse=fuse)
    assert (providers_of(session)[-1:] == [MASKWISE]) == is_claimed
    for got, wanted in zip(session.run(None, feeds), stock.run(None, feeds), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("x", [300, np.nan, -np.inf])
def test_f16_softmax_of_a_number(x: float, capfd: Any) -> None:
    """ONNX Runtime runs a scalar Softmax only in f16, and only if the model declares no rank."""
    nodes = [op("Where", "c", "x", "zero", "s"), op("Softmax", "s", "o", axis=-1)]
    inputs = [value("c", BOOL, None), value("x", F16, None)]
    zero = numpy_helper.from_array(np.array(0, "e"), "zero")
    model = model_of(nodes, inputs, [value("o", F16, None)], [zero], 17)
    session = fused_session(model, capfd, "rows f16 2 nodes")
    stock = stock_session(model)
    for keep in (True, False):
        feeds = {"c": np.array(keep), "x": np.array(x, "e")}
        got, wanted = (one.run(None, feeds)[0] for one in (session, stock))
        assert got.shape == wanted.shape == ()
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("moves", "claims"), [(1, []), (2, ["attention f16 3 nodes"])])
def test_f16_attention_between_products(moves: int, claims: list[str], capfd: Any) -> None:
    """One or two operators that move elements split the heads. After two such operators, ONNX
    Runtime rounds to f16, too."""
    nodes = []
    for name in "qkv":
        nodes += [op("Mul", "x", "x", f"{name}0"), op("Reshape", f"{name}0", "s", f"{name}1")]
        if moves == 2:
            nodes.append(op("Gather", f"{name}1", "first", f"{name}2"))
    q, k, v = (f"{name}{moves}" for name in "qkv")
    nodes += [
        op("MatMul", q, k, "scores"),
        op("Softmax", "scores", "weights", axis=-1),
        op("MatMul", "weights", v, "result"),
        op("Mul", "result", "tiny", "o"),
    ]
    constants = {"s": np.array([2, 64, 64]), "first": np.array([1, 0]), "tiny": np.array(1e-3, "e")}
    inputs = [value("x", F16, [128, 64])]
    model = model_of(
        nodes, inputs, [value("o", F16, None)], initializers(used(nodes, constants)), 17
    )
    session = fused_session(model, capfd, *claims)
    feeds = {"x": np.random.default_rng(7).random((128, 64)).astype("e") * np.float16(0.1)}
    stock = stock_session(model)
    got, wanted = (one.run(None, feeds)[0] for one in (session, stock))
    np.testing.assert_allclose(got, wanted, rtol=2**-10, atol=1e-6)


def test_f16_weights_that_are_moved_in_many_ways(capfd: Any) -> None:
    """Each of 48 Concats reads its input twice, so 2**48 paths exist. A divisor may be the second
    output of a Split."""
    nodes = [op("Where", "c", "x", "zero", "s"), op("Softmax", "s", "v0", axis=-1)]
    for n in range(48):
        nodes += [
            op("Concat", f"v{n}", f"v{n}", f"w{n}", axis=0),
            op("Gather", f"w{n}", "first", f"v{n + 1}", axis=0),
        ]
    nodes.append(helper.make_node("Split", ["v48"], ["a", "b"], axis=-1))
    constants = {"zero": np.array(0, "e"), "first": np.array([0]), "ones": np.ones((32, 1), "e")}
    inputs = [value("x", F16, [1, 64]), value("c", BOOL, [1, 64])]
    for end, claims in (("MatMul", ["rows f16 2 nodes"]), ("Mul", []), ("Div", [])):
        last = [op(end, "a", "ones" if end == "MatMul" else "b", "o")]
        last += [op(end, "b", "ones", "p")] if end == "MatMul" else []
        whole = [*nodes, *last]
        arrays = initializers(used(whole, constants))
        outputs = [value(one.output[0], F16, None) for one in last]
        model = model_of(whole, inputs, outputs, arrays, 17)
        fused_session(model, capfd, *claims)


# Consumers of weights of 2e-9, which ONNX Runtime keeps in f32. In f16, the weights would be 0.
WEIGHT_READERS: dict[str, list[Node]] = {
    "Cast and Log": [op("Cast", "weights", "f", to=F32), op("Log", "f", "o")],
    "Cast and Div": [op("Cast", "weights", "f", to=F32), op("Div", "tiny32", "f", "o")],
    "Cast and Cast": [op("Cast", "weights", "f", to=F32), op("Cast", "f", "o", to=BOOL)],
    "Greater": [op("Greater", "weights", "zero", "o")],
    "Cast to bool": [op("Cast", "weights", "o", to=BOOL)],
    "Mul and Div": [op("Mul", "weights", "large", "p"), op("Div", "tiny", "p", "o")],
    "Mul and Mul": [op("Mul", "weights", "large", "p"), op("Mul", "p", "large", "o")],
    "Sqrt and Div": [op("Sqrt", "weights", "p"), op("Div", "tiny", "p", "o")],
    "Max and Log": [op("Max", "weights", "low", "p"), op("Log", "p", "o")],
    "Where and Log": [op("Where", "c", "weights", "tiny", "p"), op("Log", "p", "o")],
    "Slice, ReduceSum and Div": [
        op("Slice", "weights", "one", "end", "one", "p"),
        op("ReduceSum", "p", "one", "sum"),
        op("Div", "p", "sum", "o"),
    ],
}


@pytest.mark.parametrize("form", WEIGHT_READERS)
def test_f16_weights_that_are_read_in_f32(form: str, capfd: Any) -> None:
    nodes = [op("Where", "c", "x", "low", "s"), op("Softmax", "s", "weights", axis=-1)]
    nodes += WEIGHT_READERS[form]
    numbers = {"low": -np.inf, "zero": 0, "tiny": 1e-6, "large": 1e3}
    constants: Feeds = {name: np.array(number, "e") for name, number in numbers.items()}
    constants |= {"tiny32": np.array(1e-9, "f"), "one": np.array([1]), "end": np.array([64])}
    is_bool = form.endswith(("Greater", "Cast", "bool"))
    result = BOOL if is_bool else F32 if form.startswith("Cast") else F16
    model = model_of(
        nodes,
        [value("x", F16, [2, 64]), value("c", BOOL, [2, 64])],
        [value("o", result, None)],
        initializers(used(nodes, constants)),
        17,
    )
    x = np.zeros((2, 64), "e")
    x[..., 0] = 20
    feeds = {"x": x, "c": np.ones((2, 64), "?")}
    session = fused_session(model, capfd)
    got, wanted = (one.run(None, feeds)[0] for one in (session, stock_session(model)))
    np.testing.assert_allclose(got, wanted, rtol=2**-9)


@pytest.mark.parametrize(
    "after",
    [
        [],
        [op("Identity", "weights", "r")],
        [op("MatMul", "weights", "ones", "r")],
        [op("Transpose", "weights", "t", perm=[1, 0]), op("Gemm", "t", "t", "r", transB=1)],
        [choice([op("Neg", "weights", "r")], [op("Identity", "weights", "r")])],
    ],
    ids=["nothing", "Identity", "MatMul", "Gemm", "If"],
)
def test_f16_weights_that_need_not_be_small(after: list[Node], capfd: Any) -> None:
    nodes = [*chain(["keep"], "x", "weights"), *after]
    for branch in (one.g for node in after for one in node.attribute if one.HasField("g")):
        branch.output[0].type.tensor_type.elem_type = F16
    constants = {**constants_of(F16), "ones": np.ones((64, 3), "e")}
    random = np.random.default_rng(9)
    feeds = {"x": normal(random, (2, 64), F16), "c": random.random((2, 64)) < 0.7}
    feeds = used(nodes, {**feeds, "b": np.array(True)})
    outputs = ["weights", *(node.output[0] for node in after[-1:])]
    model = make_model(nodes, feeds, F16, used(nodes, constants), outputs)
    session = fused_session(model, capfd, "rows f16 2 nodes")
    results = (one.run(None, feeds) for one in (session, stock_session(model)))
    for got, wanted in zip(*results, strict=True):
        assert_close(got, wanted, F16)


@pytest.mark.parametrize("moves", [0, 1])
@pytest.mark.parametrize("by", ["Div", "Log", "Reciprocal"])
def test_f16_weights_that_are_a_divisor(by: str, moves: int, capfd: Any) -> None:
    """ONNX Runtime keeps a weight of 2e-9 in f32. In f16, the weight would be 0."""
    weights = ["weights", "moved"][moves]
    nodes = [
        op("Where", "c", "x", "zero", "s"),
        op("Softmax", "s", "weights", axis=-1),
        *[op("Squeeze", "weights", "first", "moved")][:moves],
        op(by, *(["ones", weights] if by == "Div" else [weights]), "large"),
        op("Softmax", "large", "o", axis=-1),
    ]
    constants = {
        "zero": np.array(0, "e"),
        "ones": np.ones((2, 64), "e"),
        "first": np.array([0]),
    }
    model = model_of(
        nodes,
        [value("x", F16, [1, 2, 64]), value("c", BOOL, [1, 2, 64])],
        [value("o", F16, None)],
        initializers(used(nodes, constants)),
        17,
    )
    session = fused_session(model, capfd)
    x = np.zeros((1, 2, 64), "e")
    x[..., 0] = 20  # the other weights are 2e-9
    feeds = {"x": x, "c": np.ones((1, 2, 64), "?")}
    got, wanted = (one.run(None, feeds)[0] for one in (session, stock_session(model)))
    np.testing.assert_allclose(got, wanted, rtol=2**-9, atol=1e-6)
