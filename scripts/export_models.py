#!/usr/bin/env python3
"""Exports language models by both of PyTorch's exporters, as text without weights.

usage: .deps/exporters/bin/python scripts/export_models.py [--full] [--folder FOLDER] [MODEL...]

Nothing is downloaded: models are built from configurations, with weights from fixed seeds.
Without --full, writes models with 2 narrow layers to python/tests/models, for the tests. With
--full, writes models of the published sizes to build/models, for `scripts/bench onnxruntime
--models` and `scripts/bench openvino --models`.
"""

import argparse
import io
import logging
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import model_text
import onnx
import torch
import transformers

ROOT = Path(__file__).resolve().parent.parent
ByName = dict[str, Any]
EXPORTERS = ("torchscript", "dynamo")
# transformers iterates over sets of layer types, so Python's hashes determine the order of nodes.
HASH_SEED = {"PYTHONHASHSEED": "1"}
GPT2_SMALL = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 64, "vocab_size": 101}
GPT2_SMALL |= {"bos_token_id": 0, "eos_token_id": 0}
DISTILBERT_SMALL = {"n_layers": 2, "dim": 32, "hidden_dim": 64, "n_heads": 2, "vocab_size": 101}
DISTILBERT_SMALL |= {"max_position_embeddings": 64}
T5_SMALL = {"num_layers": 2, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_heads": 2}
T5_SMALL |= {"vocab_size": 101}
DEBERTA_SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 64}
DEBERTA_SMALL |= {"num_attention_heads": 2, "vocab_size": 101, "position_buckets": 8}
DEBERTA_SMALL |= {"max_position_embeddings": 64}
MODERNBERT_SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 64}
MODERNBERT_SMALL |= {"num_attention_heads": 2, "vocab_size": 101, "local_attention": 8}
MODERNBERT_SMALL |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MODERNBERT_SMALL |= {"cls_token_id": 1, "sep_token_id": 2}
# The sizes of DeBERTa-v3-base, which are not transformers' defaults.
DEBERTA = {
    "vocab_size": 128100,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 256,
    "pos_att_type": ["p2c", "c2p"],
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}


@dataclass(frozen=True)
class Model:
    kind: str  # a class of transformers
    configuration: str
    settings: ByName  # for the published size
    small: ByName  # changes for the tests
    is_decoder: bool = False  # whether the model also reads an encoder's output


MODELS = {
    "gpt2": Model("GPT2LMHeadModel", "GPT2Config", {"use_cache": False}, GPT2_SMALL),
    "distilbert": Model("DistilBertForMaskedLM", "DistilBertConfig", {}, DISTILBERT_SMALL),
    "t5_encoder": Model("T5EncoderModel", "T5Config", {"use_cache": False}, T5_SMALL),
    "t5_decoder": Model(
        "T5ForConditionalGeneration", "T5Config", {"use_cache": False}, T5_SMALL, is_decoder=True
    ),
    "deberta": Model("DebertaV2ForMaskedLM", "DebertaV2Config", DEBERTA, DEBERTA_SMALL),
    "modernbert": Model("ModernBertForMaskedLM", "ModernBertConfig", {}, MODERNBERT_SMALL),
}


def build(model: Model, exporter: str, is_full: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    settings = model.settings | ({} if is_full else model.small)
    if model.configuration == "T5Config" and exporter == "dynamo":
        # T5's scaled_dot_product_attention ends in a view that this exporter cannot express.
        settings = {**settings, "attn_implementation": "eager"}
    configuration = getattr(transformers, model.configuration)(**settings)
    return getattr(transformers, model.kind)(configuration).eval()


def example(model: Model, width: int) -> tuple[ByName, ByName, list[str]]:
    """Returns the export's arguments, their dynamic extents, and the inputs' names."""
    ids = torch.arange(24).reshape(2, 12)
    row = {0: "batch", 1: "sequence"}
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 8:] = 0
    if not model.is_decoder:
        names = ["input_ids", "attention_mask"]
        return dict(zip(names, (ids, mask), strict=True)), dict.fromkeys(names, row), names
    source = {0: "batch", 1: "source"}
    inputs = {
        "attention_mask": mask[:, 2:],
        "decoder_input_ids": ids,
        "encoder_outputs": (torch.zeros(2, 10, width),),
    }
    dims = {"attention_mask": source, "decoder_input_ids": row, "encoder_outputs": (source,)}
    return inputs, dims, list(inputs)


class Positional(torch.nn.Module):  # type: ignore[misc]  # PyTorch's types are not installed here
    """Calls the model with only the inputs in `names`, by position. Returns the first output.
    Without this class, the TorchScript exporter adds an input for each numeric default argument,
    such as logits_to_keep."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)))[0]


def by_torchscript(
    module: torch.nn.Module, inputs: ByName, dims: ByName, names: list[str]
) -> onnx.ModelProto:
    content = io.BytesIO()
    axes = {name: one[0] if isinstance(one, tuple) else one for name, one in dims.items()}
    with torch.no_grad():
        torch.onnx.export(
            Positional(module, names),
            tuple(inputs.values()),
            content,
            dynamo=False,
            input_names=names,
            output_names=["logits"],
            dynamic_axes=axes,
            opset_version=17,
        )
    return onnx.load_from_string(content.getvalue())


def by_dynamo(
    module: torch.nn.Module, inputs: ByName, dims: ByName, names: list[str]
) -> onnx.ModelProto:
    program = torch.onnx.export(
        module,
        (),
        kwargs=inputs,
        dynamo=True,
        input_names=names,
        output_names=["logits"],
        dynamic_shapes=dims,
        verbose=False,
    )
    proto: onnx.ModelProto = program.model_proto
    return proto


def export(name: str, exporter: str, is_full: bool) -> str:
    model = MODELS[name]
    module = build(model, exporter, is_full)
    inputs = example(model, getattr(module.config, "d_model", 0))
    exported = (by_dynamo if exporter == "dynamo" else by_torchscript)(module, *inputs)
    versions = (
        f"torch {torch.__version__.partition('+')[0]}, transformers {transformers.__version__}"
    )
    return model_text.text_of(exported, f"{exporter}, {versions}, onnx {onnx.__version__}")


def main() -> int:
    if not HASH_SEED.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **HASH_SEED})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--full", action="store_true", help="published sizes, not 2 layers")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder or ROOT / (
        "build/models" if arguments.full else "python/tests/models"
    )
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for name in arguments.models:
        for exporter in EXPORTERS:
            text = export(name, exporter, arguments.full)
            (folder / f"{name}-{exporter}.json").write_text(text)
            print(f"{name}-{exporter}: {text.count(chr(10))} lines", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
