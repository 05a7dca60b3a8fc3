"""The variables that the transformers code blocks of docs/pytorch.md use, and the checks of their
results. Also saves a small model for these blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import context_torch
import torch
from transformers import LlamaConfig, LlamaModel


# Uses Llama, because BERT has its own attention before transformers 5.
def names(kind: str) -> dict[str, Any]:
    names = context_torch.names(kind)
    folder = Path("model").resolve()
    config = LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    LlamaModel(config).to(context_torch.TYPES[kind]).save_pretrained(folder)
    return {**names, "name": str(folder)}


def check(names: dict[str, Any]) -> None:
    context_torch.check(names)
    words = torch.arange(120).reshape(2, 60) % 100
    padding = torch.ones_like(words)
    padding[1, 40:] = 0
    model = names["model"].to(names["q"].dtype).eval()
    assert model.config._attn_implementation == "maskwise"
    with torch.no_grad():
        answer = model(words, attention_mask=padding).last_hidden_state
        model.set_attn_implementation("eager")
        expected = model(words, attention_mask=padding).last_hidden_state
    is_token = padding.bool()
    context_torch.assert_near(answer[is_token], expected[is_token])
