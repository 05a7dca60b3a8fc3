"""Runs ONNX's node tests of Attention with maskwise.attention, except NOT_COVERED."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import Array
from onnx import helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner

# onnx 1.23.2 has 93 tests with a single Attention node. This file runs COVERED of the tests.
# NOT_COVERED counts the others by reason.
COVERED = 49
NOT_COVERED = {
    "the scores are an output": 18,
    "nonpad_kv_seqlen, a number of keys for each batch": 13,
    "a soft cap": 8,
    "a window": 5,
}
Operands = dict[str, Array]
Attributes = dict[str, Any]


def attention_cases() -> list[TestCase]:
    """Returns ONNX's tests of Attention, except those that expand the node into other operators."""
    with warnings.catch_warnings():  # other operators' tests warn while they draw inputs
        warnings.simplefilter("ignore")
        # Collects the tests of all operators, because ONNX registers tests only when it first
        # imports their modules. After collect_testcases("Attention"), no other tests would exist.
        cases = collect_testcases()
    kinds = {case.name: [node.op_type for node in case.model.graph.node] for case in cases}
    return [case for case in cases if kinds[case.name] == ["Attention"]]


def node_of(case: TestCase) -> tuple[Operands, Attributes, list[str]]:
    node = case.model.graph.node[0]
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    arrays = iter(case.data_sets[0][0])
    operands = {name: next(arrays) for name in filter(None, node.input)}
    return operands, attributes, list(node.output)


def reason_against(case: TestCase) -> str | None:
    """Returns the feature of this node that maskwise.attention or run_node lacks, or None."""
    operands, attributes, outputs = node_of(case)
    windows = [attributes.get(f"{side}_window_size", -1) for side in ("left", "right")]
    if "qk_matmul_output" in outputs:
        return "the scores are an output"
    if "nonpad_kv_seqlen" in operands:
        return "nonpad_kv_seqlen, a number of keys for each batch"
    if attributes.get("softcap", 0) != 0:
        return "a soft cap"
    return "a window" if max(windows) >= 0 else None


def with_heads(operand: Array, heads: int) -> Array:
    """Views (batch, length, heads * depth) as (batch, heads, length, depth)."""
    batch, length, width = operand.shape
    return operand.reshape(batch, length, heads, width // heads).swapaxes(1, 2)


def boundary(mask: Array | None, rows: int, past: int, keys: int) -> Array:
    """Returns `mask` combined with the causal mask, in which every row keeps the past keys."""
    kept = np.tri(rows, keys, past, dtype=bool)
    if mask is None or mask.dtype == np.bool_:
        return kept if mask is None else kept & mask
    return np.where(kept, mask, mask.dtype.type(-np.inf))


def run_node(operands: Operands, attributes: Attributes, outputs: list[str]) -> list[Array]:
    q, k, v = (operands[name] for name in "QKV")
    is_flat = q.ndim == 3
    if is_flat:
        q = with_heads(q, attributes["q_num_heads"])
        k, v = (with_heads(operand, attributes["kv_num_heads"]) for operand in (k, v))
    past = 0
    if "past_key" in operands:
        past = operands["past_key"].shape[2]
        k = np.concatenate([operands["past_key"], k], axis=2)
        v = np.concatenate([operands["past_value"], v], axis=2)
    mask, is_causal = operands.get("attn_mask"), bool(attributes.get("is_causal", 0))
    # maskwise.attention refuses a mask with is_causal, and is_causal does not count past keys.
    if is_causal and (mask is not None or past > 0):
        mask, is_causal = boundary(mask, q.shape[2], past, k.shape[2]), False
    scale = attributes.get("scale")
    y = maskwise.attention(q, k, v, mask, is_causal=is_causal, scale=scale, enable_gqa=True)
    if is_flat:
        y = y.swapaxes(1, 2).reshape(*operands["Q"].shape[:2], -1)
    results = {"Y": y, "present_key": k, "present_value": v}
    return [results[name] for name in outputs]


CASES = attention_cases()


@pytest.mark.parametrize(
    "case", [case for case in CASES if reason_against(case) is None], ids=lambda case: case.name
)
def test_node(case: TestCase) -> None:
    expected = case.data_sets[0][1]
    got = run_node(*node_of(case))
    Runner.assert_similar_outputs(expected, got, case.rtol, case.atol)


def test_nodes_that_are_not_covered() -> None:
    reasons = Counter(map(reason_against, CASES))
    assert reasons.pop(None) == COVERED
    assert reasons == NOT_COVERED
