"""Attention from MatMuls, Transposes and other operators runs as one node in ONNX Runtime."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnxruntime as ort
import pytest
from fused_models import (
    F16,
    F32,
    NAMES,
    STEPS,
    Feeds,
    Node,
    assert_close,
    attention_constants,
    attention_feeds,
    chain,
    check,
    checked,
    expected,
    fused_session,
    make_model,
    masked_fill,
    normal,
    reshaped,
    row_feeds,
    sdpa,
    used,
)
from onnx_where import op
from where_models import REFUSED, providers_of, session_of, stock_session

FORMS: dict[str, tuple[list[Node], str]] = {
    "sdpa": (sdpa("add"), "attention f32 9 nodes"),
    "sdpa, batch_first": (sdpa("add", batch_first=True), "attention f32 12 nodes"),
    "masked_fill": (masked_fill(), "attention f32 6 nodes"),
    "masked_fill, batch_first": (masked_fill(batch_first=True), "attention f32 9 nodes"),
    "no mask": (sdpa(""), "attention f32 8 nodes"),
}


@pytest.mark.parametrize("element", [F32, F16], ids=["f32", "f16"])
@pytest.mark.parametrize("form", FORMS)
def test_attention(form: str, element: int, capfd: Any) -> None:
    """One session runs all shapes."""
    random = np.random.default_rng(12)
    nodes, claim = FORMS[form]
    batch_first = "batch_first" in form
    constants = used(nodes, attention_constants(element))
    session = None
    for query, key, mask in (
        ((2, 3, 5, 16), (2, 3, 7, 16), (2, 1, 1, 7)),
        ((1, 2, 70, 16), (1, 2, 130, 16), (1, 1, 70, 130)),
        ((2, 4, 1, 16), (2, 4, 300, 16), (2, 1, 1, 300)),
        ((2, 3, 5, 16), (2, 3, 7, 16), (2, 3, 5, 7)),
        ((2, 3, 5, 16), (1, 1, 7, 16), (1, 3, 1, 7)),
        ((1, 3, 1, 16), (1, 3, 7, 16), (2, 1, 5, 7)),  # only the mask has 2 batches and 5 rows
        ((1, 3, 5, 16), (1, 3, 1, 16), (1, 1, 5, 1)),
        ((0, 3, 5, 16), (0, 3, 7, 16), (1, 1, 5, 7)),
        ((2, 3, 0, 16), (2, 3, 7, 16), (1, 1, 1, 7)),
    ):
        feeds = used(nodes, attention_feeds(random, query, key, mask, batch_first, element))
        if session is None:
            known: Any = {name: [None, None, None, 16] for name in "qkv"}
            model = make_model(nodes, feeds, element, constants, shapes=known, is_open=True)
            session = fused_session(model, capfd, claim.replace("f32", NAMES[element]))
        check(session, nodes, feeds, constants, element)


def draw_attention(random: np.random.Generator) -> tuple[list[Node], Feeds]:
    """Draws attention with random ranks, orders of dimensions, steps and batch dimensions."""
    rank = int(random.integers(2, 5))
    outer = tuple(int(n) for n in random.integers(1, 4, rank - 2))
    rows, keys, depth, columns = (int(n) for n in random.integers(1, 70, 4))

    def some_of(whole: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(extent if random.random() < 0.7 else 1 for extent in whole)

    nodes, feeds = [], {}
    matrices = {"q": (rows, depth), "k": (depth, keys), "v": (keys, columns)}
    for name, matrix in matrices.items():
        array = normal(random, some_of(outer) + matrix)
        order = [int(d) for d in random.permutation(rank)]
        feeds[name] = np.ascontiguousarray(array.transpose(np.argsort(order)))
        nodes.append(op("Transpose", name, f"{name}t", perm=order))
    feeds["c"] = np.asarray(random.random(some_of((*outer, rows, keys))) < 0.7)
    feeds["bias"] = normal(random, some_of((*outer, rows, keys))[int(random.integers(0, rank)) :])
    steps = list(random.choice(list(STEPS), int(random.integers(0, 4))))
    nodes += [
        op("Mul", "qt", "half", "qs"),
        op("MatMul", "qs", "kt", "scores"),
        *chain(steps, "scores", "w", zeros=bool(random.random() < 0.5)),
        op("MatMul", "w", "vt", "back"),
        op("Transpose", "back", "o", perm=[int(d) for d in random.permutation(rank)]),
    ]
    return nodes, used(nodes, feeds)


def test_generated_attention() -> None:
    random = np.random.default_rng(24)
    fused = 0
    for _ in range(300):
        nodes, feeds = draw_attention(random)
        constants = used(nodes, attention_constants() | {"fill": np.array(-9, np.float32)})
        session = session_of(
            make_model(nodes, feeds, F32, constants, is_open=True), is_claimed=False
        )
        check(session, nodes, feeds, constants, F32)
        fused += providers_of(session, "MatMul") == [maskwise.onnxruntime.PROVIDER] * 2
    assert fused > 60


@pytest.mark.parametrize("zeros", [False, True])
def test_fully_masked_rows(zeros: bool, capfd: Any) -> None:
    """Fully masked rows are NaN, or 0 if the model replaces NaN."""
    random = np.random.default_rng(13)
    nodes = sdpa("add") if zeros else masked_fill()
    feeds = attention_feeds(random, (2, 3, 5, 16), (2, 3, 70, 16), (2, 1, 5, 70))
    feeds["c"][:, :, 2] = False
    feeds["bias"][:, :, 2] = -np.inf
    session = checked(capfd, nodes, feeds, f"attention f32 {9 if zeros else 6} nodes")
    (got,) = session.run(["o"], used(nodes, feeds))
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
        op("MatMul", "q", "k", "scores"),
        *chain(["div", "tanh", "mul", "add"], "scores", "w"),
        op("MatMul", "w", "v", "o"),
    ]
    feeds = attention_feeds(random, (1, 2, 9, 16), (1, 2, 33, 16), (1, 1, 9, 33))
    feeds["k"] = np.ascontiguousarray(feeds["k"].swapaxes(2, 3))
    checked(capfd, nodes, feeds, "attention f32 7 nodes")


@pytest.mark.parametrize(
    ("depth", "masked", "claim"),
    [
        (64, "", "attention f32 8 nodes"),
        (65, "", "rows f32 3 nodes"),
        (128, "add", "attention f32 9 nodes"),
        (129, "add", "rows f32 4 nodes"),
    ],
)
def test_only_rows_are_claimed_if_attention_does_not_pay(
    depth: int, masked: str, claim: str, capfd: Any
) -> None:
    random = np.random.default_rng(16)
    nodes = sdpa(masked)
    feeds = attention_feeds(random, (1, 2, 9, depth), (1, 2, 140, depth), (9, 140))
    checked(capfd, nodes, feeds, claim)


@pytest.mark.parametrize("read", ["transposed", "qs", "scores", "w", "w_0"])
def test_a_second_consumer_inside_attention(read: str, capfd: Any) -> None:
    """A value with a second consumer is an input or an output of the fused node."""
    random = np.random.default_rng(17)
    nodes = [*sdpa("add"), op("Tanh", read, "second")]
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, 16), (1, 2, 140, 16), (9, 140)))
    claim = {
        "transposed": "attention f32 8 nodes",
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
    """Maskwise claims Where and refuses Softmax. Results equal ONNX Runtime's, but for signs of
    zeros."""
    random = np.random.default_rng(18)
    nodes = masked_fill()
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, 16), (1, 2, 70, 16), (9, 70)))
    model = make_model(nodes, feeds, F32, constants)
    session = session_of(model, maskwise_fuse="0", maskwise_verbose="1")
    lines = capfd.readouterr().err.splitlines()
    assert sorted(line.split(",")[3] for line in lines) == ["Softmax-13 f32", "Where-16 f32"]
    stock = stock_session(model)
    np.testing.assert_array_equal(session.run(None, feeds)[0], stock.run(None, feeds)[0])
    with pytest.raises(REFUSED, match=r"maskwise.fuse is 'yes', expected 0 or 1"):
        session_of(model, maskwise_fuse="yes")


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
def test_shapes_that_do_not_fit_are_refused(
    nodes: list[Node], wrong: dict[str, Any], texts: list[str], capfd: Any
) -> None:
    random = np.random.default_rng(19)
    constants = used(nodes, attention_constants())
    feeds = attention_feeds(random, (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70))
    if "x" in nodes[0].input:
        feeds = row_feeds(random, (3, 40), (3, 40), F32)
    feeds = used(nodes, feeds)
    session = session_of(make_model(nodes, feeds, F32, constants, is_open=True), is_claimed=False)
    bad = {
        name: np.ones(wrong[name], array.dtype) if name in wrong else array
        for name, array in feeds.items()
    }
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument) as refusal:
        session.run(None, bad)
    for text in texts:
        assert text in str(refusal.value)
    check(session, nodes, feeds, constants, F32)


@pytest.mark.parametrize(
    ("name", "shape", "refusal"),  # no refusal: the result is right
    [
        ("q", (1, 1, 2, 9, 16), ""),
        ("q", (2, 9, 16), ""),
        ("q", (288,), "the shape is {288}, but the model says 4 dimensions"),
        ("bias", (1, 1, 1, 9, 70), ""),
        ("bias", (9, 70), ""),
        ("bias", (630,), "{1,2,9,70} and {630} do not broadcast"),
        ("half", (1, 1, 1, 1), ""),
        ("half", (2,), "an operand is {2}, but the model says one element of at most 4 dimensions"),
    ],
)
def test_a_model_that_is_wrong_about_a_shape(
    name: str, shape: tuple[int, ...], refusal: str
) -> None:
    """The model declares a wrong shape for a Reshape. Runs fail or return correct results."""
    random = np.random.default_rng(22)
    nodes = sdpa("add")
    constants = used(nodes, attention_constants())
    feeds = used(nodes, attention_feeds(random, (1, 2, 9, 16), (1, 2, 70, 16), (1, 1, 9, 70)))
    whole = {**feeds, **constants}[name]
    session = session_of(reshaped(nodes, feeds, constants, name), is_claimed=False)
    inputs = {one: array for one, array in feeds.items() if one != name}
    inputs |= {"whole": np.resize(whole, int(np.prod(shape))), "shape": np.array(shape)}
    if not refusal:
        now = {**feeds, **constants, name: np.resize(whole, shape)}
        assert_close(session.run(None, inputs)[0], expected(nodes, now, {})["o"], F32)
        return
    with pytest.raises(Exception, match=re.escape(f"softmax: {refusal}")):
        session.run(None, inputs)


def test_sessions_and_threads_at_once() -> None:
    nodes = sdpa("add", batch_first=True)
    constants = used(nodes, attention_constants())

    def draw(seed: int) -> Feeds:
        random = np.random.default_rng(seed)
        rows, keys = (int(n) for n in random.integers(1, 150, 2))
        shapes = (2, 3, rows, 16), (2, 3, keys, 16), (2, 1, rows, keys)
        return used(nodes, attention_feeds(random, *shapes, batch_first=True))

    feeds = draw(0)
    known: Any = {name: [None, None, None, 16] for name in "qkv"}
    model = make_model(nodes, feeds, F32, constants, shapes=known, is_open=True)
    sessions = [session_of(model, threads, is_claimed=False) for threads in (1, 2, 2)]

    def work(seed: int) -> None:
        for turn in range(30):
            feeds = draw(100 * seed + turn % 12)
            check(sessions[(seed + turn) % 3], nodes, feeds, constants, F32)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))  # raises if a call raised


def test_fused_nodes_are_listed() -> None:
    """ONNX Runtime lists the inner nodes of a fused node as nodes of the provider."""
    nodes = masked_fill()
    feeds = used(
        nodes, attention_feeds(np.random.default_rng(20), (1, 2, 9, 16), (1, 2, 70, 16), (9, 70))
    )
    session = session_of(make_model(nodes, feeds, F32, used(nodes, attention_constants())))
    assert providers_of(session) == ["MaskwiseExecutionProvider"]
    assert providers_of(session, "MatMul") == ["MaskwiseExecutionProvider"] * 2
