"""Maskwise's provider refuses an attention operator, or returns ONNX Runtime's results."""

from __future__ import annotations

import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attention_models
import numpy as np
import onnxruntime as ort
import pytest
from attention_models import DRAWS, Case
from maskwise import _onnxruntime_report
from onnx import TensorProto, helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner
from onnx_where import model_of, op, value
from stock_judge import IS_NEW, MODELS, alone, expect_same, results_of, with_maskwise
from test_onnx_attention import CASES
from where_models import session_of, stock_session

# Maskwise runs and passes this many of ONNX's 93 node tests of Attention.
RUN_BY_MASKWISE = 60 if IS_NEW else 46


def passes(case: TestCase, make: Any) -> tuple[bool, bool]:
    """Whether ONNX's node test passes, and whether Maskwise ran the node."""
    names = [one.name for one in case.model.graph.input]
    feeds = dict(zip(names, case.data_sets[0][0], strict=True))
    got, _, claimed = results_of(make, case.model.SerializeToString(), feeds, "Attention")
    if got is None:
        return False, claimed
    try:
        Runner.assert_similar_outputs(case.data_sets[0][1], got, case.rtol, case.atol)
    except AssertionError:
        return False, claimed
    return True, claimed


def test_node_tests(capfd: Any) -> None:
    """Maskwise passes every test that ONNX Runtime passes. A verbose line claims or refuses each
    node."""
    ran = 0
    for case in CASES:
        passed, claimed = passes(
            case, lambda m: session_of(m, is_claimed=False, maskwise_verbose="1")
        )
        lines = [line for line in capfd.readouterr().err.splitlines() if ",Attention-2" in line]
        loads = IS_NEW or case.model.opset_import[0].version < 25
        assert len(lines) == loads and all(
            line.startswith(f"maskwise,{'claim' if claimed else 'refuse'},") for line in lines
        ), (case.name, lines)
        assert passed or not passes(case, stock_session)[0], case.name
        ran += claimed and passed
    assert (len(CASES), ran) == (93, RUN_BY_MASKWISE)


@pytest.mark.parametrize("kind", DRAWS)
def test_generated_models(kind: str) -> None:
    """Results equal ONNX Runtime's. ONNX Runtime 1.24 confuses f16 heads and refuses some masks."""
    claims = Counter[bool]()
    for seed in range(MODELS):
        random = np.random.default_rng(seed)
        case = DRAWS[kind](random, "e" if random.random() < 0.25 else "f")
        got, failure, claimed = with_maskwise(case)
        claims[claimed] += 1
        if not claimed and not IS_NEW:
            continue
        expected, refused, _ = alone(case)
        if not IS_NEW and "attn_mask" in case.feeds and expected is None:
            continue
        assert (expected is None) == (got is None), (seed, failure, refused)
        if got is not None:
            expect_same(case, got, expected)
    assert claims[True] > 0.4 * MODELS, claims


def line_of(capfd: Any, model: bytes, **entries: str) -> str:
    capfd.readouterr()
    # ONNX Runtime's kernel may refuse a node that Maskwise does not claim.
    with contextlib.suppress(Exception):
        session_of(model, is_claimed=False, maskwise_verbose="1", **entries)
    (line,) = [one for one in capfd.readouterr().err.splitlines() if one.startswith("maskwise,")]
    return line


def attention_case(**attributes: Any) -> Case:
    feeds = {name: np.ones((1, 2, 8, 16), np.float32) for name in "QKV"}
    return Case("Attention", feeds, ["Y"], attributes, 23)


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"is_causal": 1}, ""),
        ({"is_causal": 1, "q_num_heads": 2**31}, "q_num_heads of 2147483648"),
        ({"is_causal": 1, "q_num_heads": -(2**31) - 1}, "q_num_heads of -2147483649"),
        ({"is_causal": 2**32 + 1}, "is_causal of 4294967297"),
        ({"is_causal": 1, "softmax_precision": 2**40}, "softmax_precision of 1099511627776"),
        ({"is_causal": 1, "softcap": np.inf}, "softcap of inf"),
    ],
)
def test_lines_name_unsupported_attributes(
    capfd: Any, attributes: dict[str, Any], why: str
) -> None:
    expected = (
        f"refuse,it,Attention-23 f32,{why} is not supported" if why else "claim,it,Attention-23 f32"
    )
    assert line_of(capfd, attention_case(**attributes).model()) == f"maskwise,{expected}"


def test_scores_are_refused(capfd: Any) -> None:
    case = attention_case(is_causal=1)
    case.outputs = ["Y", "scores"]
    assert line_of(capfd, case.model()).endswith("f32,the scores are an output")


def test_deep_heads_without_a_mask_are_refused(capfd: Any) -> None:
    case = attention_case()
    case.feeds = {name: np.ones((1, 2, 8, 128), np.float32) for name in "QKV"}
    assert line_of(capfd, case.model()).endswith(
        "f32,a depth of 128 without a mask, so ONNX Runtime may be faster"
    )


def rotary_case(rows: int = 4, **feeds: Any) -> Case:
    """Returns a prompt's case, with two heads of depth 16. A feed of None removes the input."""
    random = np.random.default_rng(rows)
    arrays = {"query": random.standard_normal((1, rows, 32)).astype("f")}
    arrays |= {name: random.standard_normal((1, rows, 16)).astype("f") for name in ("key", "value")}
    arrays["seqlens_k"] = np.array([rows - 1], np.int32)
    arrays["total_sequence_length"] = np.array([rows], np.int32)
    arrays |= {n: random.standard_normal((300, 8)).astype("f") for n in ("cos_cache", "sin_cache")}
    arrays = {name: array for name, array in (arrays | feeds).items() if array is not None}
    heads = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    return Case("GroupQueryAttention", arrays, attention_models.RESULTS[:3], heads, 20, True)


@pytest.mark.parametrize(
    ("feeds", "why"),
    [
        ({}, ""),
        ({"cos_cache": None}, "do_rotary without cos_cache or sin_cache"),
        ({"value": None}, "one of key and value is missing"),
        ({"attention_bias": np.zeros((1, 1, 4, 4), "f")}, "attention_bias"),
        ({"head_sink": np.zeros(2, "f")}, "head_sink"),
    ],
)
def test_lines_name_unsupported_inputs(capfd: Any, feeds: dict[str, Any], why: str) -> None:
    line = line_of(capfd, rotary_case(**feeds).model())
    operator = "it,com.microsoft.GroupQueryAttention-1 f32"
    assert line == (f"maskwise,refuse,{operator},{why}" if why else f"maskwise,claim,{operator}")


@pytest.mark.parametrize(
    ("feeds", "why"),
    [
        ({"query": np.zeros((1, 4, 30), "f")}, "query is {1,4,30} with 4 heads"),
        ({"past_value": np.zeros((1, 2, 4, 8), "f")}, "past_value is {1,2,4,8}"),
        ({"key_padding_mask": np.zeros((1, 3), np.int32)}, "key_padding_mask is {1,3}"),
    ],
)
def test_shapes_of_a_model_are_checked_before_a_claim(
    capfd: Any, feeds: dict[str, Any], why: str
) -> None:
    arrays = {name: np.zeros((1, 4, 32), "f") for name in ("query", "key", "value")}
    arrays |= {f"past_{name}": np.zeros((1, 4, 4, 8), "f") for name in ("key", "value")}
    case = Case(
        "MultiHeadAttention", arrays | feeds, attention_models.RESULTS[:3], {"num_heads": 4}
    )
    line = line_of(capfd, case.model())
    assert line.startswith(f"maskwise,refuse,it,com.microsoft.MultiHeadAttention-1 f32,{why}")


@pytest.mark.parametrize(("attribute", "value"), [("do_rotary", 0), ("smooth_softmax", 1)])
def test_attributes_of_group_query_are_refused(capfd: Any, attribute: str, value: int) -> None:
    case = rotary_case()
    case.attributes[attribute] = value
    assert line_of(capfd, case.model()).startswith("maskwise,refuse,")


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        (
            {"position_ids": np.array([[297, 0, 0, 0]])},
            "4 rows from position 297 on are not within the 300 positions",
        ),
        ({"position_ids": np.array([[-1, 1, 2, 3]])}, "position -1 on"),
        ({"position_ids": np.array([[-(2**63), 1, 2, 3]])}, f"position {-(2**63)} on"),
        ({"position_ids": np.array([[2**63 - 1, 1, 2, 3]])}, f"position {2**63 - 1} on"),
        ({"position_ids": np.array([[0, 1]])}, "position_ids is {1,2}, expected at least {1,4}"),
        ({"position_ids": np.zeros((2, 4), np.int64)}, "position_ids is {2,4}, expected {1,4}"),
        ({"position_ids": np.zeros((1, 4, 0), np.int64)}, "position_ids is {1,4,0}"),
        ({"position_ids": np.array([0, 1, 2, 3])}, "position_ids is {4}"),
        ({"sin_cache": np.zeros((3, 8), "f")}, "sin_cache is {3,8}, expected at least {4,8}"),
        ({n: np.zeros((300, 4), "f") for n in ("cos_cache", "sin_cache")}, "cos_cache is {300,4}"),
        ({n: np.zeros((300, 16), "f") for n in ("cos_cache", "sin_cache")}, "{300,16}"),
        ({n: np.zeros(300, "f") for n in ("cos_cache", "sin_cache")}, "cos_cache is {300}"),
        ({n: np.zeros((3, 8), "f") for n in ("cos_cache", "sin_cache")}, "at least {4,0}"),
        (
            {"seqlens_k": np.array([350], np.int32)}
            | {f"past_{name}": np.zeros((1, 1, 400, 16), "f") for name in ("key", "value")},
            "cos_cache is {300,8}, expected at least {351,0}",
        ),
        (
            {"query": np.zeros((1, 4, 30), "f"), "key": None, "value": None},
            "packed query is {1,4,30} with 4 heads",
        ),
    ],
)
def test_rotary_inputs_that_do_not_fit_are_refused(feeds: dict[str, Any], text: str) -> None:
    got, failure, claimed = with_maskwise(rotary_case(**feeds))
    assert claimed and got is None and "Maskwise: " in failure and text in failure


@pytest.mark.parametrize(
    ("entries", "axis", "why"),
    [
        ({"maskwise_fuse": "0"}, -1, "maskwise.fuse is 0"),
        ({}, 0, "not along the last dimension, or not in f32 or f16"),
        ({}, -1, "no neighbor that Maskwise can fuse"),
    ],
)
def test_every_softmax_has_a_line(capfd: Any, entries: Any, axis: int, why: str) -> None:
    ends = [value(name, TensorProto.FLOAT, [8, 128]) for name in "xy"]
    node = helper.make_node("Softmax", ["x"], ["y"], "it", axis=axis)
    line = line_of(capfd, model_of([node], ends[:1], ends[1:]), **entries)
    assert line.startswith("maskwise,refuse,it,") and line.endswith("," + why)


def test_the_report_counts_attention(capfd: Any, tmp_path: Any) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(attention_case(is_causal=1).model())
    assert _onnxruntime_report.main([str(path)]) == 0
    printed = capfd.readouterr().out
    assert "Attention  it  Maskwise\n1 of 1 Attention by Maskwise\n" in printed


def test_other_operators_of_attention_have_a_line(capfd: Any) -> None:
    shapes = {"x": [1, 8, 16], "w": [16, 48], "b": [48]}
    inputs = [value(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    node = helper.make_node(
        "Attention", list(shapes), ["y"], "it", domain="com.microsoft", num_heads=2
    )
    line = line_of(capfd, model_of([node], inputs, [value("y", TensorProto.FLOAT, None)]))
    assert line == (
        "maskwise,refuse,it,com.microsoft.Attention-1 f32,no kernel for its kind, version and types"
    )


def test_a_function_with_an_operators_name_is_not_claimed() -> None:
    """A model's function named com.microsoft.MultiHeadAttention may compute anything."""
    opset = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    names = ["query", "key", "value"]
    body = helper.make_function(
        "com.microsoft", "MultiHeadAttention", names, ["Y"], [op("Add", "query", "key", "Y")],
        opset[:1], ["num_heads"],
    )  # fmt: skip
    node = helper.make_node(
        "MultiHeadAttention", names, ["Y"], "it", domain="com.microsoft", num_heads=1
    )
    ends = [value(name, TensorProto.FLOAT, [1, 4, 8]) for name in [*names, "Y"]]
    graph = helper.make_graph([node], "test", ends[:3], ends[3:])
    model = helper.make_model(graph, opset_imports=opset, functions=[body], ir_version=10)
    feeds = {name: np.full((1, 4, 8), number, np.float32) for number, name in enumerate(names, 1)}
    expected, refused, _ = results_of(stock_session, model.SerializeToString(), feeds, "Add")
    make = lambda m: session_of(m, is_claimed=False)  # noqa: E731
    got, failure, _ = results_of(make, model.SerializeToString(), feeds, "Add")
    assert (expected is None) == (got is None), (refused, failure)
    if got is not None:
        assert got[0].tolist() == expected[0].tolist()


@pytest.mark.parametrize("is_rotary", [False, True])
def test_a_cache_may_be_updated_in_place(is_rotary: bool) -> None:
    """GroupQueryAttention's past and present may share memory."""
    random = np.random.default_rng(1)
    case = attention_models.draw_group_query(random)
    while (
        case.feeds["query"].shape[1] != 1
        or "past_key" not in case.feeds
        or ("cos_cache" in case.feeds) != is_rotary
        or (case.feeds["past_key"].shape[2] < case.feeds["total_sequence_length"])
    ):
        case = attention_models.draw_group_query(random)
    results = []
    for session in (session_of(case.model(), is_claimed=False), stock_session(case.model())):
        binding = session.io_binding()
        arrays = {n: case.feeds[f"past_{n}"].copy() for n in ("key", "value")}
        cache = {n: ort.OrtValue.ortvalue_from_numpy(array) for n, array in arrays.items()}
        for name, array in case.feeds.items():
            if not name.startswith("past_"):
                binding.bind_cpu_input(name, array)
        for name, memory in cache.items():
            binding.bind_ortvalue_input(f"past_{name}", memory)
            binding.bind_ortvalue_output(f"present_{name}", memory)
        binding.bind_output("Y")
        session.run_with_iobinding(binding)
        y = binding.copy_outputs_to_cpu()[-1]
        results.append([y, *(memory.numpy().copy() for memory in cache.values())])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, 2e-5, 2e-5)


def test_threads_at_once_and_other_shapes() -> None:
    case = attention_case(is_causal=1)
    case.is_open = True
    session = session_of(case.model(), threads=2, is_claimed=False)
    stock = stock_session(case.model())

    def run(rows: int) -> None:
        random = np.random.default_rng(rows)
        feeds = {n: random.standard_normal((1, 2, rows, 16)).astype("f") for n in "QKV"}
        np.testing.assert_allclose(
            session.run(None, feeds)[0], stock.run(None, feeds)[0], 2e-5, 2e-5
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, [1, 5, 64, 65, 130, 7, 200, 5] * 4))


def test_threads_at_once_rotate() -> None:
    """Threads do not share the memory of rotated queries."""
    model = rotary_case().model()
    session, stock = session_of(model, threads=2, is_claimed=False), stock_session(model)

    def run(rows: int) -> None:
        feeds = rotary_case(rows).feeds
        for one, other in zip(session.run(None, feeds), stock.run(None, feeds), strict=True):
            np.testing.assert_allclose(one, other, 2e-5, 2e-5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, [2, 5, 64, 65, 130, 7, 300, 5] * 8))
