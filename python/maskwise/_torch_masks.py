"""Converts masks of torch.ops.maskwise.attention: small tensors to rules, and rules to arrays."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,untyped-decorator,unused-ignore"

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from maskwise import _torch_version  # noqa: F401  # raises if torch is too old for the imports below

# isort: split
import numpy as np
import torch

from maskwise._call import window_mask
from maskwise._mask import Mask


class Elements(NamedTuple):
    """A small tensor as a key of mask_of's cache, which the layers of a model share."""

    shape: tuple[int, ...]
    dtype: str
    elements: bytes

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor | None) -> Elements | None:
        if tensor is None:
            return None
        array = tensor.numpy()
        return cls(array.shape, array.dtype.str, array.tobytes())

    def array(self) -> Any:
        return np.frombuffer(self.elements, self.dtype).reshape(self.shape)


@lru_cache(maxsize=16)
def mask_of(
    is_causal: bool,
    window: tuple[int, int] | None,
    offset: int | None,
    document_ids: Elements | None,
    key_mask: Elements | None,
    mask_rules: Elements | None,
    keys: int,
) -> Mask:
    mask = Mask._from_rules(causal=is_causal, offsets=(offset,) if offset else ())
    if window is not None:
        mask &= window_mask(window)
    ids = None if document_ids is None else document_ids.array()
    if ids is not None and (ids != ids[:, :1]).any():
        mask &= Mask.documents(ids)
    if mask_rules is not None:
        mask &= _mask_with(mask_rules.array())
    return mask if key_mask is None else mask & padding_rules(key_mask.array(), keys)


def _mask_with(rule_numbers: Any) -> Mask:
    mask = Mask()
    mask._rules = type(mask._rules).of_numbers(rule_numbers.tolist())
    return mask


@torch.library.custom_op("maskwise::kept_by_rules", mutates_args=(), device_types="cpu")
def _written_rules(mask_rules: torch.Tensor, sequences: int, rows: int, keys: int) -> torch.Tensor:
    mask = _mask_with(mask_rules.numpy())
    if mask._rules.slopes:
        raise NotImplementedError(
            "maskwise has no slopes in vmap, or in gradients of gradients of a torch graph"
        )
    return torch.from_numpy(mask.to_dense(rows, keys, sequences))


@_written_rules.register_fake
def _(mask_rules: torch.Tensor, sequences: int, rows: int, keys: int) -> torch.Tensor:
    return mask_rules.new_empty(sequences, rows, keys, dtype=torch.bool)


def with_array(mask: Mask, array: torch.Tensor) -> Mask:
    """Returns the mask's rules with `array`. If the mask has an array (padding with gaps), combines
    both arrays."""
    gaps = None if mask._array is None else torch.from_numpy(mask._array.copy())
    return mask._beside(restricted(array, gaps))


def padding_rules(mask: Any, keys: int, first_key: int = 0) -> Mask:
    """Returns padding as rules if each sequence's unmasked keys are adjacent, else as an array.
    `mask`: boolean (batch, keys), or None. Keys past the mask's end are masked."""
    if mask is None:
        return Mask()
    kept = np.zeros((mask.shape[0], keys), bool)
    known = np.asarray(mask)[:, first_key : first_key + keys]
    kept[:, : known.shape[1]] = known
    if kept.all():
        return Mask()
    counts, starts = kept.sum(axis=1), kept.argmax(axis=1)
    ends = keys - kept[:, ::-1].argmax(axis=1)
    if ((ends - starts != counts) & (counts > 0)).any():
        return Mask.dense(kept[:, None, None])
    lengths = np.where(counts == 0, 0, ends)
    padding = Mask() if (starts == 0).all() else Mask.starts(starts)
    return padding if (lengths == keys).all() else padding & Mask.lengths(lengths)


def kept_places(
    q: torch.Tensor, k: torch.Tensor, is_causal: bool, window: Any, offset: Any = None
) -> torch.Tensor | None:
    """Returns is_causal and window as a boolean array (rows, keys), or None if neither is set."""
    if not is_causal and window is None:
        return None
    left, right = (-1, -1) if window is None else window
    rows = torch.arange(q.shape[-2], device=q.device)[:, None]
    rows = rows if offset is None else rows + offset
    keys = torch.arange(k.shape[-2], device=q.device)
    kept = keys <= rows if is_causal else torch.ones_like(keys <= rows)
    kept = kept if left < 0 else kept & (keys >= rows - left)
    return kept if right < 0 else kept & (keys <= rows + right)


def restricted(mask: torch.Tensor | None, kept: torch.Tensor | None) -> torch.Tensor | None:
    """Combines a boolean or added mask with a boolean mask. None masks nothing."""
    if mask is None or kept is None:
        return kept if mask is None else mask
    return mask & kept if mask.dtype == torch.bool else mask.masked_fill(~kept, -torch.inf)


def kept_keys(key_mask: torch.Tensor, keys: int) -> torch.Tensor:
    """Cuts or extends the mask to (batch, keys). Keys past the mask's end are masked."""
    return torch.nn.functional.pad(key_mask, (0, max(0, keys - key_mask.shape[1])))[:, :keys]


def written(
    rules: Mask, array: torch.Tensor | None, extents: tuple[int, int], leading: tuple[int, ...]
) -> torch.Tensor | None:
    """Combines rules and an array in one array. `extents`: rows and keys. `leading`: the result's
    dimensions before its rows, sequences first."""
    sequences = leading[0] if leading else 1
    if rules._rules.slopes:
        heads = leading[-1] if leading else 1
        biases = torch.from_numpy(rules._rules.native.biases(sequences, heads, *extents))
        if len(leading) < 2:  # one dimension counts both sequences and heads
            biases = biases.diagonal().movedim(-1, 0).reshape(*leading, *extents)
        else:
            biases = biases.reshape(sequences, *(1,) * (len(leading) - 2), heads, *extents)
        return restricted(biases, array)
    kept = rules._without_array().to_dense(*extents, sequences)
    outer = (sequences, *(1,) * (len(leading) - 1)) if leading else ()
    return restricted(array, torch.from_numpy(kept.reshape(*outer, *extents)))
