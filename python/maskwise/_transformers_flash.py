"""attn_implementation="maskwise_flash": what transformers gives to flash_attn, as attention takes it."""

# torch and transformers need not be there where the package is checked.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from typing import Any

import torch
from transformers import masking_utils

from maskwise import Mask
from maskwise._transformers_mask import LazyMask, is_traced, mask, padding_rules

PLAIN_MASKS = ("causal_mask_function", "bidirectional_mask_function")


def flash_mask(**given: Any) -> torch.Tensor | None:
    """(batch, keys), which are padding, or None: what models with flash_attn expect, where a
    layer's `is_causal` says the rest. Other masks are mask()'s, with four dimensions.
    """
    function = given["mask_function"]
    names = [name for name in PLAIN_MASKS if getattr(masking_utils, name, None) is function]
    is_said = names and (given.get("attention_mask") is not None or names[0] == PLAIN_MASKS[1])
    if is_said or (names and _ends_with_rows(given)):
        return masking_utils.flash_attention_mask(**given)
    return mask(**given)


def _ends_with_rows(given: dict[str, Any]) -> bool:
    """Whether the last row is that of the last key; in a static cache empty keys may follow."""
    first, rows = given.get("q_offset"), given.get("q_length")
    known = isinstance(first, int) and isinstance(rows, int)
    return known and first + rows == given["kv_offset"] + given["kv_length"]


def padded_mask(
    padding: torch.Tensor | None, shape: tuple[int, int, int], causal: bool, window: int | None
) -> torch.Tensor | None:
    """Of rows that are the last ones of their keys. padding: boolean, (batch, keys); shape: batch,
    rows and keys; window: keys on each side, the row's own included.
    """
    batch, rows, keys = shape
    if padding is None and window is None and (not causal or rows in (1, keys)):
        return None

    def dense() -> torch.Tensor:
        device = None if padding is None else padding.device
        places = torch.arange(keys, device=device)
        distance = places - places[keys - rows :, None]
        kept = distance <= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
        kept = kept if window is None else kept & (distance.abs() < window)
        return kept[None, None] if padding is None else kept & padding[:, None, None]

    if is_traced(padding) or (padding is not None and padding.device.type != "cpu"):
        return dense()
    rules = Mask._of(causal=causal, offsets=(keys - rows,))
    rules = rules if window is None else rules & Mask.window(window - 1, window - 1)
    rules = rules if padding is None else rules & padding_rules(padding, keys)
    return LazyMask((batch, 1, rows, keys), rules, dense)


def packed_ends(others: dict[str, Any], query: torch.Tensor, key: torch.Tensor) -> dict[str, Any]:
    """A layer's arguments with cu_seq_lens, where position_ids start anew, as flash_attn's callers have it."""
    positions, rows = others.get("position_ids"), query.shape[2]
    if (
        others.get("cu_seq_lens_q") is not None
        or positions is None
        or query.shape[0] != 1
        or rows == 1
        or key.shape[2] != rows
        or positions.numel() != rows
        or is_traced(positions)
    ):
        return others
    starts = positions.reshape(-1) == positions.min()
    if starts.sum() < 2:
        return others
    ends = torch.nonzero(torch.nn.functional.pad(starts[1:], (1, 1), value=True)).flatten()
    return {**others, "cu_seq_lens_q": ends, "cu_seq_lens_k": ends}
