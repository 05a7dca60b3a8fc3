"""Tests language models from PyTorch's exporters. Logits must equal ONNX Runtime's, and must be
bit-identical if Maskwise claims only Where.
scripts/export_models.py exports the graphs in models/. Weights are random, with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import maskwise.onnxruntime
import model_text
import numpy as np
import pytest
from arrays import assert_same_bits
from where_models import options, stock_session

MODELS = Path(__file__).parent / "models"
VOCABULARY = 101
# Each model's claimed and unclaimed Wheres after ONNX Runtime's optimizers.
CLAIMS: dict[str, tuple[list[str], list[str]]] = {
    "deberta-dynamo": (
        ["node_masked_fill", "node_masked_fill_1", "node_where", "node_where_1"],
        [],
    ),
    "deberta-torchscript": (
        [
            "/model/deberta/encoder/Where",
            "/model/deberta/encoder/Where_1",
            "/model/deberta/encoder/layer.0/attention/self/Where_2",
            "/model/deberta/encoder/layer.1/attention/self/Where_2",
        ],
        [
            "/model/deberta/encoder/layer.0/attention/self/Where",
            "/model/deberta/encoder/layer.0/attention/self/Where_1",
            "/model/deberta/encoder/layer.1/attention/self/Where",
            "/model/deberta/encoder/layer.1/attention/self/Where_1",
        ],
    ),
    "distilbert-dynamo": (["node_Where_124", "node_Where_129", "node_Where_195"], []),
    "distilbert-torchscript": (
        [
            "/model/distilbert/transformer/layer.0/attention/Where",
            "/model/distilbert/transformer/layer.0/attention/Where_1",
            "/model/distilbert/transformer/layer.1/attention/Where_1",
        ],
        ["/model/distilbert/Where"],
    ),
    "gpt2-dynamo": (["node_Where_129", "node_Where_134", "node_Where_228"], []),
    "gpt2-torchscript": (
        [
            "/model/transformer/h.0/attn/Where",
            "/model/transformer/h.0/attn/Where_1",
            "/model/transformer/h.1/attn/Where_1",
        ],
        ["/model/transformer/Where"],
    ),
    "modernbert-dynamo": (
        ["node_Where_209", "node_Where_214", "node_Where_310", "node_Where_315"],
        [],
    ),
    "modernbert-torchscript": (
        [
            "/model/model/layers.0/attn/Where",
            "/model/model/layers.0/attn/Where_1",
            "/model/model/layers.1/attn/Where",
            "/model/model/layers.1/attn/Where_1",
        ],
        ["/model/model/Where"],
    ),
    "t5_decoder-dynamo": (["node_where", "node_where_1", "node_where_2"], []),
    "t5_decoder-torchscript": (
        [
            "/model/decoder/block.0/layer.0/SelfAttention/Where",
            "/model/decoder/block.0/layer.0/SelfAttention/Where_1",
            "/model/decoder/block.0/layer.1/EncDecAttention/Where",
            "/model/decoder/block.1/layer.0/SelfAttention/Where",
        ],
        ["/model/decoder/Where"],
    ),
    "t5_encoder-dynamo": (["node_where", "node_where_1"], []),
    "t5_encoder-torchscript": (
        [
            "/model/encoder/block.0/layer.0/SelfAttention/Where",
            "/model/encoder/block.0/layer.0/SelfAttention/Where_1",
        ],
        ["/model/encoder/Where"],
    ),
}
# The fused nodes of each of the two layers.
FUSIONS = {
    "deberta-dynamo": ["rows f32 2 nodes"],
    "deberta-torchscript": ["rows f32 2 nodes"],
    "distilbert-dynamo": ["attention f32 11 nodes"],
    "distilbert-torchscript": ["attention f32 10 nodes"],
    "gpt2-dynamo": ["attention f32 11 nodes"],
    "gpt2-torchscript": ["attention f32 10 nodes"],
    "modernbert-dynamo": ["attention f32 10 nodes"],
    "modernbert-torchscript": ["attention f32 9 nodes"],
    "t5_decoder-dynamo": ["rows f32 3 nodes", "rows f32 3 nodes"],
    "t5_decoder-torchscript": ["attention f32 5 nodes", "attention f32 5 nodes"],
    "t5_encoder-dynamo": ["rows f32 3 nodes"],
    "t5_encoder-torchscript": ["attention f32 5 nodes"],
}


def feeds_of(session: Any, batch: int, sequence: int, padding: str) -> dict[str, Any]:
    random = np.random.default_rng(sequence)
    extents = {"batch": batch, "sequence": sequence, "source": sequence + 3}
    feeds: dict[str, Any] = {}
    for one in session.get_inputs():
        shape = [extents.get(dim, dim) for dim in one.shape]
        if one.name == "attention_mask":
            # "all" tests the IsNaN and Where that exporters add for fully masked rows.
            least, most = {"none": (shape[1], shape[1]), "some": (1, shape[1]), "all": (0, 0)}[
                padding
            ]
            ends = random.integers(least, most + 1, (batch, 1))
            feeds[one.name] = (np.arange(shape[1]) < ends).astype(np.int64)
        elif one.type == "tensor(int64)":
            feeds[one.name] = random.integers(0, VOCABULARY, shape)
        else:
            feeds[one.name] = random.standard_normal(shape).astype(np.float32)
    return feeds


def assigned(session: Any) -> tuple[list[str], list[str]]:
    """Returns the names of Maskwise's Where nodes, and the names of ONNX Runtime's Where nodes.
    Asserts that Maskwise runs no other node."""
    nodes = [
        (node.name, node.op_type, group.ep_name == maskwise.onnxruntime.PROVIDER)
        for group in session.get_provider_graph_assignment_info()
        for node in group.get_nodes()
    ]
    assert {kind for _, kind, is_ours in nodes if is_ours} == {"Where"}
    wheres = sorted((is_ours, name) for name, kind, is_ours in nodes if kind == "Where")
    return [n for is_ours, n in wheres if is_ours], [n for is_ours, n in wheres if not is_ours]


def test_every_model_has_expected_claims() -> None:
    assert sorted(path.stem for path in MODELS.glob("*.json")) == sorted(CLAIMS)


def logits(session: Any, stock: Any) -> Iterator[tuple[Any, Any]]:
    for batch, sequence in ((2, 12), (1, 1), (3, 31)):
        for padding in ("none", "some", "all"):
            feeds = feeds_of(session, batch, sequence, padding)
            got, expected = (one.run(["logits"], feeds)[0] for one in (session, stock))
            assert np.isfinite(expected).all()
            # DeBERTa sets the embeddings of padding to 0, so its logits may be constant.
            assert np.ptp(expected) > 0 or padding == "all"
            yield got, expected


@pytest.mark.parametrize("name", CLAIMS)
def test_logits(name: str) -> None:
    model = model_text.read(MODELS / f"{name}.json").SerializeToString()
    stock = stock_session(model)
    session = maskwise.onnxruntime.session(model, options(maskwise_fuse="0"))
    assert assigned(session) == CLAIMS[name]
    for got, expected in logits(session, stock):
        assert_same_bits(got, expected)


@pytest.mark.parametrize("name", FUSIONS)
def test_logits_with_fusion(name: str, capfd: Any) -> None:
    model = model_text.read(MODELS / f"{name}.json").SerializeToString()
    stock = stock_session(model)
    capfd.readouterr()
    session = maskwise.onnxruntime.session(model, options(maskwise_verbose="1"))
    lines = [line.split(",") for line in capfd.readouterr().err.splitlines()]
    fused = [
        node for _, verdict, _, node, *_ in lines if verdict == "claim" and "Where" not in node
    ]
    assert fused == 2 * FUSIONS[name], lines
    for got, expected in logits(session, stock):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
