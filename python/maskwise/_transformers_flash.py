"""attn_implementation="maskwise_flash": converts transformers' flash_attn arguments to masks."""

# mypy may check the package without torch and transformers.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from typing import Any

import torch
from transformers import masking_utils

from maskwise import Mask
from maskwise._torch_masks import padding_rules
from maskwise._transformers_mask import LazyMask, is_traced, mask, variables


def flash_mask(**arguments: Any) -> torch.Tensor | None:
    """Calls mask(). Returns None in continuous batching: layers read keys from a paged cache."""
    documents = _documents_of(arguments["mask_function"])
    if documents is not None and documents.shape[-1] != arguments["kv_length"]:
        return None
    return mask(**{**arguments, "allow_is_causal_skip": False})


def _documents_of(function: Any) -> torch.Tensor | None:
    """Returns each row's document, from transformers' mask functions; None without documents."""
    if getattr(function, "__module__", "") != masking_utils.__name__:
        return None
    name, arguments = function.__qualname__.partition(".<locals>")[0], variables(function)
    if name == "and_masks":
        documents = map(_documents_of, arguments["mask_functions"])
        return next((one for one in documents if one is not None), None)
    return arguments.get("packed_sequence_mask")


def padded_mask(
    padding: torch.Tensor | None,
    shape: tuple[int, int, int],
    causal: bool,
    window: int | None,
    documents: torch.Tensor | None = None,
) -> torch.Tensor | None:
    """Returns the mask, with the last row aligned to the last key; None if no mask is needed.
    padding: boolean (batch, keys). shape: batch, rows and keys. window: number of keys on either
    side, including the row's own key. documents: the result of traced_documents()."""
    batch, rows, keys = shape
    if documents is not None:
        kept = _written(padding, rows, keys, causal, window)
        return kept & (documents[:, None] == documents)
    if padding is None and window is None and (not causal or rows in (1, keys)):
        return None

    if is_traced(padding) or (padding is not None and padding.device.type != "cpu"):
        return _written(padding, rows, keys, causal, window)
    rules = Mask._from_rules(causal=causal, offsets=(keys - rows,))
    rules = rules if window is None else rules & Mask.window(window - 1, window - 1)
    return LazyMask((batch, 1, rows, keys), rules & padding_rules(padding, keys))


def _written(
    padding: torch.Tensor | None, rows: int, keys: int, causal: bool, window: int | None
) -> torch.Tensor:
    """Computes the mask without documents, by operators that torch can trace."""
    places = torch.arange(keys, device=None if padding is None else padding.device)
    distance = places - places[keys - rows :, None]
    kept = distance <= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    kept = kept if window is None else kept & (distance.abs() < window)
    return kept[None, None] if padding is None else kept & padding[:, None, None]


def _is_one_sequence(others: dict[str, Any], query: torch.Tensor, key: torch.Tensor) -> bool:
    """Whether a layer's position_ids may define documents: one sequence of several rows, as many
    keys as rows, and no cu_seq_lens."""
    positions, rows = others.get("position_ids"), query.shape[2]
    return (
        others.get("cu_seq_lens_q") is None
        and positions is not None
        and query.shape[0] == 1
        and rows != 1
        and key.shape[2] == rows
        and positions.numel() == rows
    )


def packed_ends(others: dict[str, Any], query: torch.Tensor, key: torch.Tensor) -> dict[str, Any]:
    """Returns the layer's arguments, with cu_seq_lens added if the position_ids restart."""
    positions = others.get("position_ids")
    if not _is_one_sequence(others, query, key) or is_traced(positions):
        return others
    starts = _starts(positions)
    if starts.sum() < 2:
        return others
    ends = torch.nonzero(torch.nn.functional.pad(starts[1:], (1, 1), value=True)).flatten()
    return {**others, "cu_seq_lens_q": ends, "cu_seq_lens_k": ends}


def traced_documents(
    others: dict[str, Any], query: torch.Tensor, key: torch.Tensor
) -> torch.Tensor | None:
    """Returns each row's document from traced position_ids; all 0 if there is only one. None if the
    position_ids are not traced, or cannot define documents."""
    positions = others.get("position_ids")
    if not _is_one_sequence(others, query, key) or not is_traced(positions):
        return None
    starts = _starts(positions)
    return starts.cumsum(0) * (starts.sum() > 1)


def _starts(positions: torch.Tensor) -> torch.Tensor:
    return positions.reshape(-1) == positions.min()
