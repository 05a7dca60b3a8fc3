"""Tests attention in forms that no exporter writes. ONNX Runtime's kernels are the reference."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

import attention_models
import numpy as np
import pytest
from arrays import Array
from attention_models import DRAWS, Case, loosen, spoil
from onnx.reference import ReferenceEvaluator
from stock_judge import (
    IS_NEW,
    MASKWISE,
    MODELS,
    Results,
    StockJudge,
    alone,
    expect_same,
    with_maskwise,
)
from where_models import providers_of, session_of

FIRST = int(os.environ.get("MASKWISE_ATTENTION_SEED", "0"))


def outputs_of(session: Any, feeds: dict[str, Array]) -> Results | str:
    try:
        return [*session.run(None, feeds)]
    except Exception as failure:  # ONNX Runtime's error classes are private
        return str(failure)


# Cases that ONNX Runtime runs and Maskwise refuses: the refusal's text, and the reason.
REFUSED_ALONE = [
    ("past_value is", "ONNX Runtime does not check that past_value and value have the same depth"),
]
# ONNX Runtime 1.24 checks fewer shapes and numbers and may read outside the operands.
REFUSED_ALONE_BEFORE = (
    "(Q|K|V)( split into heads)? (is|of shape)|attn_mask is|seqlens_k|total_sequence_length is|"
    r"\d+ rows from position|cos_cache is"
)


# Cases that Maskwise runs and ONNX Runtime 1.32 refuses: cosine and sine caches of different
# lengths, a prompt with a past, and a past whose keys and values differ in depth. Values without
# columns crash ONNX Runtime.
REFUSED_BY_STOCK = (
    "must have the same shape|for a static cache|past_value' dimension 3|^the process ended"
)


def may_refuse(failure: str) -> bool:
    refusal = failure.rpartition("Maskwise: ")[2]
    is_listed = any(refusal.startswith(text) for text, _ in REFUSED_ALONE)
    return is_listed or (not IS_NEW and re.match(REFUSED_ALONE_BEFORE, refusal) is not None)


def with_whole_mask(case: Case) -> Case:
    """Returns the case with a mask of all rows and keys. From opset 24 on, keys past the end of a
    short mask are masked."""
    mask, rows = case.feeds["attn_mask"], case.feeds["Q"].shape[-2]
    if case.feeds["Q"].ndim == 3:
        rows = case.feeds["Q"].shape[1]
    caches = [case.feeds[n] for n in ("K", "past_key") if n in case.feeds]
    keys = sum(array.shape[-2] for array in caches)
    columns = keys if case.opset == 23 else mask.shape[-1]
    mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, (rows, columns)))
    added = [(0, 0)] * (mask.ndim - 1) + [(0, keys - columns)]
    masked = False if mask.dtype == np.bool_ else -np.inf
    whole = np.pad(mask, added, constant_values=masked)
    return replace(case, feeds={**case.feeds, "attn_mask": whole})


def by_definition(case: Case) -> Results:
    """Returns the results of ONNX's reference evaluator, which needs a mask of all rows and
    keys."""
    case = with_whole_mask(case)
    results = ReferenceEvaluator(case.model()).run(case.outputs, case.feeds)
    return [np.asarray(one) for one in results]


def is_defined(case: Case, change: Any) -> bool:
    """Whether ONNX Runtime defines the result. Before 1.28, spoiled cases and empty inputs have
    undefined results."""
    return IS_NEW or (change is loosen and all(array.size for array in case.feeds.values()))


def expect_right(
    case: Case, got: Results | str, stock: Results | str, is_defined: bool, seed: int
) -> None:
    """If ONNX Runtime runs a case, Maskwise returns equal results or refuses for a listed
    reason."""
    if isinstance(got, str):
        is_ours = "Maskwise" in got or "Missing Input" in got
        assert is_ours if isinstance(stock, str) else may_refuse(got), (seed, got)
    elif not isinstance(stock, str):
        if is_defined:
            expect_same(case, got, stock)
    else:
        assert not IS_NEW or re.search(REFUSED_BY_STOCK, stock), (seed, stock)


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("change", [spoil, loosen])
def test_odd_models(kind: str, change: Any) -> None:
    """Maskwise raises an error or returns ONNX Runtime's results."""
    judge, claims = StockJudge(), 0
    for seed in range(FIRST, FIRST + MODELS):
        random = np.random.default_rng(seed)
        case = change(random, DRAWS[kind](random, "f"))
        model = case.model()
        try:
            session = session_of(model, threads=2, is_claimed=False)
        except Exception:  # from ONNX Runtime's kernel or its check of the model
            continue
        if providers_of(session, kind) != [MASKWISE]:
            continue  # ONNX Runtime's kernel may end the process
        claims += 1
        stock, got = judge.run(model, case.feeds), outputs_of(session, case.feeds)
        if isinstance(stock, str) and not isinstance(got, str) and "attn_mask" in case.feeds:
            whole = with_whole_mask(case)
            stock = judge.run(whole.model(), whole.feeds)
        expect_right(case, got, stock, is_defined(case, change), seed)
    assert claims > 0.1 * MODELS, claims


def group_case(**feeds: Any) -> Case:
    """A decoding step: one new key for each of two sequences, which have 9 and 6 past keys."""
    random = np.random.default_rng(5)
    arrays = {"query": random.standard_normal((2, 1, 32)).astype("f")}
    arrays |= {name: random.standard_normal((2, 1, 16)).astype("f") for name in ("key", "value")}
    for name in ("past_key", "past_value"):
        arrays[name] = random.standard_normal((2, 1, 9, 16)).astype("f")
    arrays["seqlens_k"] = np.array([9, 6], np.int32)
    arrays["total_sequence_length"] = np.array(10, np.int32)
    arrays |= {n: random.standard_normal((300, 8)).astype("f") for n in ("cos_cache", "sin_cache")}
    heads = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    return Case(
        "GroupQueryAttention", arrays | feeds, attention_models.RESULTS[:3], heads, 20, True
    )


def multi_head_case(**feeds: Any) -> Case:
    """Cross attention, with keys and values of four dimensions."""
    random = np.random.default_rng(6)
    arrays = {"query": random.standard_normal((2, 3, 32)).astype("f")}
    arrays |= {n: random.standard_normal((2, 2, 9, 16)).astype("f") for n in ("key", "value")}
    arrays |= {n: random.standard_normal(shape).astype("f") for n, shape in feeds.items()}
    outputs = attention_models.RESULTS[: 3 if "past_key" in feeds else 1]
    return Case("MultiHeadAttention", arrays, outputs, {"num_heads": 2}, 20)


# ONNX Runtime's kernels accept these forms, but its documentation does not mention them.
FORMS = {
    "lengths of {batch, 1}": group_case(seqlens_k=np.array([[9], [6]], np.int32)),
    "more positions than rows": group_case(position_ids=np.arange(24).reshape(2, 4, 3)),
    "a bias of projections": multi_head_case(bias=(96,)),
    "a past": multi_head_case(past_key=(2, 2, 4, 16), past_value=(2, 2, 4, 16)),
    "a past and a bias": multi_head_case(
        bias=(96,), past_key=(2, 2, 4, 16), past_value=(2, 2, 4, 16)
    ),
}
EMPTY = {name: np.zeros((2, 0, 16), "f") for name in ("key", "value")}
CACHED = {"seqlens_k": np.array([8, 5], np.int32), "total_sequence_length": np.array(9, np.int32)}
if IS_NEW:
    lengths = {"seqlens_k": np.array([[[9], [6]]], np.int32)}
    FORMS |= {"lengths of {1, batch, 1}": group_case(**lengths)}
    FORMS |= {"keys that another layer cached": group_case(**EMPTY, **CACHED)}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_onnx_runtime_takes(form: str) -> None:
    case = FORMS[form]
    got, failure, claimed = with_maskwise(case)
    assert claimed and got is not None, failure
    expect_same(case, got, alone(case)[0])


@pytest.mark.parametrize("rows", [8, 300])
@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_masked_keys_that_are_not_finite(rows: int, odd: float) -> None:
    """With a boolean mask, ONNX Runtime makes each row NaN, but Maskwise does not. With an additive
    mask, both make each row NaN."""
    random = np.random.default_rng(rows)
    feeds = {n: random.standard_normal((1, 2, rows, 16)).astype("f") for n in "QKV"}
    feeds["attn_mask"] = np.arange(rows) < np.full((rows, 1), rows - 1)
    case = Case("Attention", feeds, ["Y"], {}, 24)
    expected = alone(case)[0]
    feeds["K"][..., -1, :] = odd
    assert np.isnan(alone(case)[0][0]).all()
    expect_same(case, with_maskwise(case)[0], expected)
    feeds["attn_mask"] = np.where(feeds["attn_mask"], 0, -np.inf).astype("f")
    assert np.isnan(with_maskwise(case)[0][0]).all()


def test_keys_past_a_length_do_not_matter() -> None:
    """Keys past the lengths in MultiHeadAttention's key_padding_mask may be NaN."""
    case = multi_head_case()
    case.feeds["key_padding_mask"] = np.array([4, 9], np.int32)
    expected = alone(case)[0]
    for name in ("key", "value"):
        case.feeds[name][0, :, 4:] = np.nan
    got, failure, claimed = with_maskwise(case)
    assert claimed and got is not None, failure
    expect_same(case, got, expected)


@pytest.mark.skipif(
    not IS_NEW, reason="the expected results are those of ONNX Runtime 1.28 and newer"
)
@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("shape", [(1, 9), (7, 1), (9,), (2, 1, 1, 9), (4, 7, 1), (7, 5), (1, 1)])
@pytest.mark.parametrize("past", [0, 4])
def test_masks_that_onnx_allows_but_onnx_runtime_refuses(opset: int, shape: Any, past: int) -> None:
    random = np.random.default_rng(opset)
    shape = (*shape[:-1], shape[-1] + past) if shape[-1] > 1 else shape
    feeds = {"Q": random.standard_normal((2, 4, 7, 16)).astype("f")}
    feeds |= {n: random.standard_normal((2, 2, 9, 16)).astype("f") for n in "KV"}
    feeds["attn_mask"] = random.random(shape) < 0.7
    if past:
        for name in ("past_key", "past_value"):
            feeds[name] = random.standard_normal((2, 2, past, 16)).astype("f")
    for mask in (feeds["attn_mask"], np.where(feeds["attn_mask"], 0.5, -np.inf).astype("f")):
        for is_causal in (0, 1):
            feeds["attn_mask"] = mask
            outputs = attention_models.RESULTS[: 3 if past else 1]
            case = Case("Attention", feeds, outputs, {"is_causal": is_causal}, opset, True)
            got, failure, claimed = with_maskwise(case)
            if opset == 23 and shape[-1] not in (1, 9 + past):
                assert got is None and "Maskwise: attn_mask is" in failure
            else:
                assert claimed and got is not None, failure
                expect_same(case, got, by_definition(case))
