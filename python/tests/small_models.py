"""Small models of each type in transformers, with random weights, and inputs for them."""

from __future__ import annotations

import inspect
import os
import re
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    MODEL_MAPPING,
)

MOST_PARAMETERS = 40_000_000
LENGTH, DECODED = 40, 23
WORDS = 99
# Small values for a configuration's fields, by name pattern. The first match counts.
SIZES = (
    (r"^(hidden_size|d_model|n_embd|dim|embed_dim|embedding_size|emb_dim|width)$", 64),
    (r"^(word_embed_proj_dim|lm_hidden_size|out_hidden_size|hidden_dim|text_embed_dim)$", 64),
    (r"^(decoder_hidden_size|encoder_hidden_size|output_hidden_size|vocab_hidden)$", 64),
    (r"(intermediate_size|ffn_dim|d_ff|n_inner|ffn_hidden|mlp_dim|ffn_hidden_size)$", 96),
    (r"^(num_hidden_layers|n_layers?|num_layers|depth|encoder_layers|decoder_layers)$", 2),
    (r"^(num_decoder_layers|num_encoder_layers)$", 2),
    (r"^(num_attention_heads|n_heads?|num_heads|encoder_attention_heads)$", 4),
    (r"^(decoder_attention_heads|(en|de)coder_num_attention_heads)$", 4),
    (r"^(num_key_value_heads|n_kv_heads|(en|de)coder_num_key_value_heads)$", 2),
    (r"^(head_dim|d_kv|attention_head_dim|global_head_dim)$", 16),
    (r"^(vocab_size|vocab_size_per_layer_input|decoder_vocab_size)$", WORDS),
    (r"^image_size$", 32),
    (r"^patch_size$", 8),
    (r"^(num_experts|num_local_experts|n_routed_experts|moe_num_experts)$", 4),
    (r"(num_experts_per_tok|top_k|moe_topk|top_k_experts)$", 2),
    (r"^sliding_window$", 12),
    (r"^attention_chunk_size$", 16),
    (r"^(max_position_embeddings|n_positions|max_(source|target)_positions)$", 256),
    (r"^pad_token_id$", 0),
    (r"^bos_token_id$", 1),
    (r"^eos_token_id$", 2),
    (r"^decoder_start_token_id$", 1),
    (r"^(q_lora_rank|kv_lora_rank|qk_nope_head_dim|qk_rope_head_dim|v_head_dim)$", 16),
    (r"^(n_group|topk_group|first_k_dense_replace)$", 1),
    (r"^(num_mel_bins|num_mel_channels)$", 16),
    (r"^projection_dim$", 32),
    (r"^rotary_dim$", 8),
    (r"^attn_layer_period$", 2),
    (r"^attn_layer_offset$", 1),
)


LISTS = {"attn_layer_indices": [1], "mrope_section": [2, 3, 3]}
# Overrides of SIZES, and values of fields that are None by default. A model may refuse a variant.
Variant = dict[str, Any]
VARIANTS: tuple[Variant, ...] = (
    {"num_key_value_heads": 2, "head_dim": 16},
    {"num_key_value_heads": 4, "head_dim": 16},
    {"num_key_value_heads": 2},
    {},
    {"num_key_value_heads": 2, "mrope_section": [2, 3, 3]},
    {"num_key_value_heads": 2, "mrope_section": [1, 1, 2]},
)


def size_of(name: str, variant: Variant) -> int | None:
    match = next((size for pattern, size in SIZES if re.search(pattern, name)), None)
    return match if match is None else variant.get(name, match)


def shrunk(known: dict[str, Any], config: Any, variant: Variant) -> dict[str, Any]:
    """Returns the values that must change in a configuration to build a small model."""
    parts, aliases = getattr(config, "sub_configs", {}), getattr(config, "attribute_map", {})
    small: dict[str, Any] = {}
    for name, value in known.items():
        size = size_of(name, variant)
        if name in LISTS and value is not None:
            small[name] = LISTS[name]
        elif isinstance(value, dict) and name in parts:
            small[name] = shrunk(value, parts[name], variant)
        elif name == "rope_parameters" and "mrope_section" in {*value, *variant}:
            section = variant.get("mrope_section", LISTS["mrope_section"])
            small[name] = {**value, "mrope_section": section}
        elif name in ("layer_types", "layers_block_type") and value:
            small[name] = (list(dict.fromkeys(value)) * 2)[:2]
        elif name == "model_type":
            small[name] = value
        elif size is not None and (type(value) is int or name == "pad_token_id"):
            small[name] = size
        elif value is None and name in variant:
            small[name] = variant[name]
    for alias, name in aliases.items():
        size = size_of(alias, variant)
        if name not in small and type(known.get(name)) is int and size is not None:
            small[name] = size
    return small


def config_of(kind: str, variant: Variant) -> Any:
    config_class = CONFIG_MAPPING[kind]
    values = shrunk(config_class().to_dict(), config_class, variant)
    values.pop("model_type", None)
    return config_class(**values)


def class_of(config: Any) -> Any:
    """Returns the configuration's model class, from transformers' Auto classes or the model's
    module."""
    mappings = [MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, MODEL_MAPPING]
    for mapping in mappings:
        if type(config) in mapping:
            classes = mapping[type(config)]
            return classes[0] if isinstance(classes, tuple | list) else classes
    module = import_module(type(config).__module__.replace("configuration_", "modeling_"))
    for one in vars(module).values():
        is_its = isinstance(one, type) and getattr(one, "config_class", None) is type(config)
        if is_its and not one.__name__.endswith("PreTrainedModel"):
            return one
    raise LookupError(f"no model of {type(config).__name__}")


def build(kind: str, variant: Variant, name: str) -> Any:
    config = config_of(kind, variant)
    torch.manual_seed(0)
    return class_of(config)._from_config(config, attn_implementation=name).eval().float()


def require_small(kind: str, variant: Variant) -> None:
    config = config_of(kind, variant)
    with torch.device("meta"), suppress(NotImplementedError, RuntimeError):
        model = class_of(config)._from_config(config, attn_implementation="eager")
        count = sum(one.numel() for one in model.parameters())
        if count > MOST_PARAMETERS:
            raise MemoryError(f"{count} parameters")


def random(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


def words(length: int, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, WORDS - 1, (2, length), generator=generator)


def number(config: Any, *names: str, default: int) -> int:
    """Returns the first of these attributes that a configuration or one of its parts has."""
    parts = [config] + [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            value = value[0] if isinstance(value, list | tuple) and value else value
            if type(value) is int:
                return value
    return default


def candidates(model: Any) -> Iterator[dict[str, Any]]:
    """Yields inputs that the model's forward() may accept."""
    config, known = model.config, inspect.signature(model.forward).parameters
    size = number(config, "image_size", default=32)
    channels = number(config, "num_channels", "in_channels", default=3)
    bins = number(config, "num_mel_bins", "num_mel_channels", "feature_size", default=16)
    frames = 2 * number(config, "max_source_positions", default=64)
    video = random(
        2, number(config, "num_frames", "frames_per_clip", default=2), channels, size, size
    )
    images, features = random(2, channels, size, size), random(2, bins, frames)
    inputs = (
        {},
        {"pixel_values": images},
        {"pixel_values": video},
        {"pixel_values_videos": video},
        {"input_values": random(2, 4000)},
        {"input_features": features},
        {"input_features": features.mT},
        {"inputs_embeds": random(2, LENGTH, number(config, "hidden_size", "d_model", default=64))},
    )
    decoded = {"decoder_input_ids": words(DECODED, 3)}
    for text in ({"input_ids": words(LENGTH, 3)}, {}):
        for one in inputs:
            whole = {**text, **decoded, **one}
            arguments = {name: value for name, value in whole.items() if name in known}
            if arguments.keys() & {*one, *text}:
                yield arguments
