"""Packed documents in one sequence, from transformers' cu_seq_lens."""

# mypy may check the package without torch and transformers.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maskwise import Mask


@dataclass(frozen=True)
class Packed:
    """Documents with the cu_seqlens `rows` and `keys`. `causal` and `window` count within a
    document and align its last row with its last key."""

    rows: torch.Tensor
    keys: torch.Tensor
    causal: bool
    window: int | None = None  # number of keys on either side, including the row's own key

    def rules(self) -> Mask:
        mask = Mask.packed(self.rows, self.keys)
        mask = mask & Mask.causal() if self.causal else mask
        side = None if self.window is None else self.window - 1
        return mask if side is None else mask & Mask.window(side, side)

    def dense(self, rows: int, keys: int) -> torch.Tensor:
        """Computes the mask (rows, keys) by operators that torch can trace."""
        document, row = _places(self.rows, rows)
        document_of_key, key = _places(self.keys, keys)
        ahead = self.keys.diff() - self.rows.diff()
        row = row + ahead[document.clamp(max=len(ahead) - 1)]
        kept = (document[:, None] == document_of_key) & (document < len(ahead))[:, None]
        if self.causal:
            kept &= key <= row[:, None]
        if self.window is not None:
            kept &= (key - row[:, None]).abs() < self.window
        return kept

    def joined(self, mask: torch.Tensor | None, rows: int, keys: int) -> torch.Tensor:
        """Combines a boolean or additive mask with the documents."""
        kept = self.dense(rows, keys)
        if mask is None:
            return kept[None, None]
        return mask & kept if mask.dtype == torch.bool else mask.masked_fill(~kept, -torch.inf)


def _places(ends: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns each position's document and index in the document. Positions past the last document
    get the number of documents."""
    places = torch.arange(length, device=ends.device)
    document = torch.searchsorted(ends[1:].contiguous(), places, right=True)
    return document, places - ends[document]


def packed_of(
    others: dict[str, Any], query: torch.Tensor, causal: bool, window: int | None = None
) -> Packed | None:
    """Returns documents from a layer's cu_seq_lens_q and cu_seq_lens_k; None without these."""
    ends = others.get("cu_seq_lens_q")
    if ends is None:
        return None
    if query.shape[0] != 1:
        raise ValueError(
            f"cu_seq_lens_q is for documents in one sequence, query has {query.shape[0]} sequences"
        )
    keys = others.get("cu_seq_lens_k")
    return Packed(ends, ends if keys is None else keys, causal, window)


def rules_and_array(
    packed: Packed, mask: torch.Tensor | None, rules: Mask | None
) -> tuple[Mask, torch.Tensor | None]:
    """Combines the documents with a mask and the mask's `rules`. If rules cannot express the
    combination, also returns the mask as an array."""
    packed_rules = packed.rules()
    if rules is None or mask is None:
        return packed_rules, mask
    if rules._rules.documents == packed_rules._rules.documents:
        return rules, None
    are_alike = torch.equal(packed.rows, packed.keys)
    if rules._array is not None or not are_alike or rules._rules.documents:
        return packed_rules, mask
    return packed_rules & rules, None
