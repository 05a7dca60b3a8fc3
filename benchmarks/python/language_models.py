"""Whole models of transformers, of published widths and few layers, with attn_implementation
"maskwise" and "sdpa" in turns, in one process: both run on torch's threads.

Started by scripts/bench transformers, which has everything installed and built.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import maskwise.transformers  # noqa: F401  # registers itself
import torch
import transformers
from machine import machine_facts
from table import keep, shown
from transformers import AutoConfig, AutoModel
from worker import ROOT

TURNS, SECONDS = 5, 60.0  # of a case, at most
HEAD = ["model", "words", "type", "SDPA, ms", "Maskwise, ms", "times as fast", "apart"]
NAMES = ("sdpa", "maskwise")


@dataclass
class Model:
    name: str
    family: str
    lengths: tuple[int, ...]
    batch: int = 1
    config: dict[str, Any] = field(default_factory=dict)


# Layers are cut; a vocabulary costs nothing here.
MODELS = (
    Model(
        "ModernBERT-base, 6 layers",
        "modernbert",
        (16, 256, 1024, 2048, 4096, 8192),
        config={"num_hidden_layers": 6, "vocab_size": 1000, "max_position_embeddings": 8192},
    ),
    Model(
        "Gemma 3 270M, 6 layers",
        "gemma3_text",
        (16, 512, 2048, 4096),
        config={
            "hidden_size": 640,
            "intermediate_size": 2048,
            "num_hidden_layers": 6,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "sliding_window": 512,
            "vocab_size": 1000,
        },
    ),
    Model(
        "Qwen 3 0.6B, 4 layers, padded",
        "qwen3",
        (128, 1024),
        2,
        {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 4,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 1000,
        },
    ),
    Model(
        "BERT-base, 4 layers, padded",
        "bert",
        (32, 128, 512),
        8,
        {"num_hidden_layers": 4, "vocab_size": 1000},
    ),
)


def make(model: Model, dtype: torch.dtype) -> Any:
    torch.manual_seed(1)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(model.family, **{**special, **model.config})
    for name in ("cls_token_id", "sep_token_id"):
        if getattr(config, name, None) is not None:
            setattr(config, name, 3)
    return AutoModel.from_config(config).eval().to(dtype)


def words_of(model: Model, length: int) -> dict[str, Any]:
    """Of a batch, all but the first are padded on the right, the last one by half."""
    ids = torch.randint(5, 999, (model.batch, length), generator=torch.Generator().manual_seed(2))
    mask = torch.ones(model.batch, length, dtype=torch.long)
    for row in range(1, model.batch):
        mask[row, length - length * row // (2 * (model.batch - 1)) :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def run(made: Any, name: str, given: dict[str, Any]) -> tuple[float, Any]:
    made.set_attn_implementation(name)
    begin = time.perf_counter()
    answer = made(**given)[0]
    return 1e3 * (time.perf_counter() - begin), answer


def measure(made: Any, given: dict[str, Any]) -> tuple[dict[str, float], float]:
    """Medians, and how far both are apart where words count."""
    answers = {name: run(made, name, given)[1] for name in NAMES}
    kept = given["attention_mask"].bool()
    apart = (answers["sdpa"] - answers["maskwise"])[kept].abs().max().item()
    taken: dict[str, list[float]] = {name: [] for name in NAMES}
    begin, turn = time.monotonic(), 0
    while turn < TURNS or (time.monotonic() - begin < 2 and turn < 10 * TURNS):
        for name in NAMES[:: 1 if turn % 2 == 0 else -1]:
            taken[name].append(run(made, name, given)[0])
        turn += 1
        if time.monotonic() - begin > SECONDS:
            break
    return {name: statistics.median(times) for name, times in taken.items()}, apart


def rows(only: str) -> Iterator[list[str]]:
    for model in MODELS:
        for kind in ("float32", "bfloat16") if only in model.name else ():
            made = make(model, getattr(torch, kind))
            for length in model.lengths:
                times, apart = measure(made, words_of(model, length))
                ratio = times["sdpa"] / times["maskwise"]
                size = f"{model.batch} x {length}" if model.batch > 1 else str(length)
                numbers = (f"{times['sdpa']:.4g}", f"{times['maskwise']:.4g}", f"{ratio:.2f}")
                yield [model.name, size, kind, *numbers, f"{apart:.1e}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench transformers", description=__doc__)
    parser.add_argument(
        "--only", default="", help="measure only models with this in their name, and keep nothing"
    )
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    print("\n".join(f"{name}: {value}" for name, value in machine_facts().items()))
    with torch.inference_mode():
        table = shown(HEAD, rows(arguments.only))
    if not arguments.only:
        versions = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"
        keep(ROOT / "build/bench", "transformers", versions, HEAD, table)
    return 0 if table else 1


if __name__ == "__main__":
    sys.exit(main())
