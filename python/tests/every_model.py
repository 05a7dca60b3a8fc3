"""Every type of model that transformers can build from a small configuration, under "maskwise" and
"maskwise_flash" next to eager attention.

usage: every_model.py [--part I N] [TYPE...]

A type agrees if its results are eager attention's, by from_config() and by set_attn_implementation(),
without padding, with padding on the left and on the right, and if a masked word changes nothing. A
type that transformers does not let have "sdpa" (flash_attention_2) must be refused in its words.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import signal
import sys
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import maskwise.torch  # noqa: E402
import maskwise.transformers as door  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import PreTrainedModel, modeling_utils  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402
from transformers.models.auto.modeling_auto import (  # noqa: E402
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    MODEL_MAPPING,
)

STOCK = {door.NAME: "sdpa", door.FLASH_NAME: "flash_attention_2"}
OWN_REFUSAL = "has attention of its own"
TOLERANCE = 2e-4  # of the largest value
SECONDS = 180  # for a type
MOST_PARAMETERS = 40_000_000
LENGTH, PADDED, DECODED = 40, 9, 23
WORDS = 99
# The first that fits a number's name is its value.
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
# Numbers that default configurations leave out. Some models have no use for them, or take another.
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
    found = next((size for pattern, size in SIZES if re.search(pattern, name)), None)
    return found if found is None else variant.get(name, found)


def shrunk(known: dict[str, Any], config: Any, variant: Variant) -> dict[str, Any]:
    """A configuration's values that build a small model."""
    parts, aliases = getattr(config, "sub_configs", {}), getattr(config, "attribute_map", {})
    made: dict[str, Any] = {}
    for name, value in known.items():
        size = size_of(name, variant)
        if name in LISTS and value is not None:
            made[name] = LISTS[name]
        elif isinstance(value, dict) and name in parts:
            made[name] = shrunk(value, parts[name], variant)
        elif name == "rope_parameters" and "mrope_section" in {*value, *variant}:
            section = variant.get("mrope_section", LISTS["mrope_section"])
            made[name] = {**value, "mrope_section": section}
        elif name in ("layer_types", "layers_block_type") and value:
            made[name] = (list(dict.fromkeys(value)) * 2)[:2]
        elif name == "model_type":
            made[name] = value
        elif size is not None and (type(value) is int or name == "pad_token_id"):
            made[name] = size
        elif value is None and name in variant:
            made[name] = variant[name]
    for alias, name in aliases.items():
        size = size_of(alias, variant)
        if name not in made and type(known.get(name)) is int and size is not None:
            made[name] = size
    return made


def config_of(kind: str, variant: Variant) -> Any:
    made = CONFIG_MAPPING[kind]
    values = shrunk(made().to_dict(), made, variant)
    values.pop("model_type", None)
    return made(**values)


def class_of(config: Any) -> Any:
    """The library's class for language models, or the first that its Auto classes do not list."""
    mappings = [MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, MODEL_MAPPING]
    for mapping in mappings:
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple | list) else found
    module = import_module(type(config).__module__.replace("configuration_", "modeling_"))
    for one in vars(module).values():
        if isinstance(one, type) and getattr(one, "config_class", None) is type(config):
            if not one.__name__.endswith("PreTrainedModel"):
                return one
    raise LookupError(f"no model of {type(config).__name__}")


def build(kind: str, variant: Variant, name: str) -> Any:
    config = config_of(kind, variant)
    torch.manual_seed(0)
    return class_of(config)._from_config(config, attn_implementation=name).eval().float()


def require_small(kind: str, variant: Variant) -> None:
    config = config_of(kind, variant)
    with torch.device("meta"), suppress(NotImplementedError, RuntimeError):
        made = class_of(config)._from_config(config, attn_implementation="eager")
        count = sum(one.numel() for one in made.parameters())
        if count > MOST_PARAMETERS:
            raise MemoryError(f"{count} parameters")


def random(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


def words(length: int, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, WORDS - 1, (2, length), generator=generator)


def number(config: Any, *names: str, default: int) -> int:
    """Of a configuration or its parts."""
    parts = [config] + [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            value = value[0] if isinstance(value, list | tuple) and value else value
            if type(value) is int:
                return value
    return default


def candidates(model: Any) -> Iterator[dict[str, Any]]:
    """Inputs that its forward() may take."""
    config, known = model.config, inspect.signature(model.forward).parameters
    size = number(config, "image_size", default=32)
    channels = number(config, "num_channels", "in_channels", default=3)
    bins = number(config, "num_mel_bins", "num_mel_channels", "feature_size", default=16)
    frames = 2 * number(config, "max_source_positions", default=64)
    video = random(2, number(config, "num_frames", "frames_per_clip", default=2), channels, size, size)
    images, features = random(2, channels, size, size), random(2, bins, frames)
    made = (
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
        for one in made:
            whole = {**text, **decoded, **one}
            given = {name: value for name, value in whole.items() if name in known}
            if given.keys() & {*one, *text}:
                yield given


def padded(side: str | None) -> Any:
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    if side == "left":
        mask[0, :PADDED] = 0
    elif side == "right":
        mask[0, -PADDED:] = 0
    return mask


def outputs(model: Any, given: dict[str, Any]) -> list[Any]:
    torch.manual_seed(0)
    with torch.no_grad():
        made = model(**given)
    names = ("logits", "last_hidden_state", "encoder_last_hidden_state")
    names += ("image_embeds", "text_embeds", "pooler_output")
    found = [getattr(made, name, None) for name in names] if hasattr(made, "keys") else []
    found = [one for one in found if torch.is_tensor(one)]
    leaves = torch.utils._pytree.tree_leaves(made if isinstance(made, tuple) else list(made.values()))
    floats = [one for one in leaves if torch.is_tensor(one) and one.is_floating_point()]
    return found or floats[:1]


@dataclass
class Case:
    given: dict[str, Any]
    mask: Any
    expected: list[Any]
    of_sdpa: list[Any] | None = None  # where that differs, as in rows without keys
    changed: dict[str, Any] | None = None  # with other words where the mask is 0
    is_independent: bool = False  # whether eager attention's results are the same then


def cases_of(model: Any) -> list[Case]:
    """By eager attention."""
    failure: Exception | None = None
    for given in candidates(model):
        try:
            first = outputs(model, given)
            break
        except (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError) as error:
            failure = failure or error
    else:
        raise LookupError(f"no inputs: {failure!r}")
    if not first:
        raise LookupError("no outputs")
    cases = [Case(given, None, first)]
    takes_mask = "attention_mask" in inspect.signature(model.forward).parameters
    for side in ("left", "right") if takes_mask and "input_ids" in given else ():
        mask = padded(side)
        own = {**given, "attention_mask": mask}
        other = torch.where(mask.bool(), given["input_ids"], words(LENGTH, 5))
        case = Case(own, mask, outputs(model, own), changed={**own, "input_ids": other})
        case.is_independent = not apart(outputs(model, case.changed or {}), case.expected, mask)
        cases.append(case)
    with suppress(ValueError, KeyError):
        model.set_attn_implementation("sdpa")
        for case in cases:
            case.of_sdpa = outputs(model, case.given)
    model.set_attn_implementation("eager")
    return cases


def unmasked(values: Any, mask: Any) -> Any:
    """The rows that the mask keeps; there may be one more at either end."""
    if mask is None or values.ndim < 2 or len(values) != len(mask):
        return values
    more = values.shape[1] - mask.shape[1]
    if not 0 <= more <= 1:
        return values
    pad = torch.nn.functional.pad
    return values[(pad(mask, (more, 0), value=1) * pad(mask, (0, more), value=1)).bool()]


def apart(found: list[Any], expected: list[Any], mask: Any) -> str:
    """Where results differ, of rows that the mask keeps."""
    if [one.shape for one in found] != [one.shape for one in expected]:
        return f"shapes {[tuple(one.shape) for one in found]}"
    for own, other in zip(found, expected, strict=True):
        own, other = (unmasked(one, mask).float() for one in (own, other))
        if not torch.equal(own.isfinite(), other.isfinite()):
            return f"{(~own.isfinite()).sum()} values are not finite"
        own, other = own[own.isfinite()], other[other.isfinite()]
        scale = max(1.0, float(other.abs().max())) if other.numel() else 1.0
        difference = float((own - other).abs().max()) if other.numel() else 0.0
        if difference > TOLERANCE * scale:
            return f"{difference:.3g} of {scale:.3g}"
    return ""


@dataclass
class Count:
    attentions: int = 0


@contextmanager
def counted() -> Iterator[Count]:
    """The attentions that Maskwise runs."""
    count, attend = Count(), door.attend

    def counting(*given: Any, **options: Any) -> Any:
        count.attentions += 1
        return attend(*given, **options)

    door.attend = counting
    try:
        yield count
    finally:
        door.attend = attend


@contextmanager
def flash_attn_at_hand() -> Iterator[None]:
    """Transformers asks for no package and no download, so that it refuses only a model."""

    def correct(self: Any, attn_implementation: Any, *_: Any, **__: Any) -> Any:
        return self.get_correct_attn_implementation(attn_implementation, True)

    with ExitStack() as kept:
        for owner, name, value in (
            (PreTrainedModel, "_check_and_adjust_attn_implementation", correct),
            (PreTrainedModel, "_flash_attn_import_error", lambda *_, **__: None),
            (modeling_utils, "is_flash_attn_2_available", lambda: True),
        ):
            if hasattr(owner, name):
                kept.enter_context(patch.object(owner, name, value))
        yield


def refusal(kind: str, variant: Variant, name: str) -> str:
    """Of from_config(), or empty."""
    try:
        with flash_attn_at_hand(), torch.device("meta"), suppress(NotImplementedError, RuntimeError):
            build(kind, variant, name)
    except ImportError:  # of a download
        return ""
    except ValueError as error:
        return str(error).replace(repr(name), "NAME")
    return ""


def faults_of(model: Any, cases: list[Case], name: str) -> list[str]:
    faults = []
    for case in cases:
        found = outputs(model, case.given)
        difference = apart(found, case.expected, case.mask)
        if difference and (case.of_sdpa is None or apart(found, case.of_sdpa, case.mask)):
            faults.append(f"{name} differs by {difference}")
        if case.is_independent and apart(outputs(model, case.changed or {}), found, case.mask):
            faults.append(f"{name}: a masked word changes an unmasked row")
    return faults


@dataclass
class Verdict:
    kind: str
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    attentions: int = 0
    unbuilt: str = ""

    def summary(self) -> str:
        if self.unbuilt:
            return "not buildable"
        if self.faults:
            return "DIFFERING"
        return "refused" if len(self.refused) == len(STOCK) else "agreed"


def examine_name(
    verdict: Verdict, variant: Variant, model: Any, cases: list[Case], name: str
) -> None:
    of_stock = refusal(verdict.kind, variant, STOCK[name])
    said: list[str] = []
    ways: list[Callable[[], Any]] = [
        lambda: build(verdict.kind, variant, name),
        lambda: model.set_attn_implementation(name) or model,
    ]
    for way in ways:
        try:
            one = way()
        except ValueError as error:
            said.append(str(error).replace(repr(name), "NAME"))
        else:
            verdict.faults += faults_of(one, cases, name)
    model.set_attn_implementation("eager")
    if not said:
        return
    if of_stock and all(of_stock in one for one in said):
        verdict.refused.append(f"{name}: as stock")
    elif not of_stock and all(OWN_REFUSAL in one for one in said):
        verdict.refused.append(f"{name}: own attention")
    else:
        verdict.faults.append(f"{name} is refused: {said[0][:150]} (stock: {of_stock[:80]!r})")


def examine(kind: str) -> Verdict:
    verdict = Verdict(kind)
    for variant in VARIANTS:
        try:
            require_small(kind, variant)
            model = build(kind, variant, "eager")
            cases = cases_of(model)
            break
        except TimeoutError:
            raise
        except Exception as error:
            verdict.unbuilt = verdict.unbuilt or f"{type(error).__name__}: {error}"
    else:
        return verdict
    verdict.unbuilt = ""
    with counted() as count:
        for name in STOCK:
            try:
                examine_name(verdict, variant, model, cases, name)
            except TimeoutError:
                raise
            except Exception as error:
                verdict.faults.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    verdict.attentions = count.attentions
    return verdict


def within(seconds: int, kind: str) -> Verdict:
    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return examine(kind)
    except TimeoutError as error:
        return Verdict(kind, unbuilt=str(error))
    finally:
        signal.alarm(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs=2, type=int, metavar=("I", "N"), default=(0, 1))
    parser.add_argument("types", nargs="*", metavar="TYPE")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # models are small
    maskwise.torch.LEAST_PRODUCTS = 0
    part, parts = arguments.part
    counts: Counter[str] = Counter()
    for kind in arguments.types or sorted(CONFIG_MAPPING)[part::parts]:
        verdict = within(SECONDS, kind)
        counts[verdict.summary()] += 1
        counts["no attention of the interface"] += verdict.summary() == "agreed" and not verdict.attentions
        details = verdict.unbuilt or "; ".join(verdict.faults or verdict.refused)
        print(f"{kind}: {verdict.summary()} {verdict.attentions} {details[:400]}", flush=True)
    print("every_model:", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if counts["DIFFERING"] else 0


if __name__ == "__main__":
    sys.exit(main())
