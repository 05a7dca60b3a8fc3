"""Converts transformers' mask functions to rules, once per forward pass."""

# mypy may check the package without torch and transformers.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from transformers import masking_utils

from maskwise import Mask
from maskwise._torch_masks import padding_rules
from maskwise._torch_tensors import is_in_mode, is_plain
from maskwise._torch_version import READS_MASKS
from maskwise.torch import is_small


class LazyMask(torch.Tensor):
    """A boolean mask (batch, 1, rows, keys). Elements are computed when they are first read."""

    rules: Mask
    written: torch.Tensor | None
    is_lent: bool  # other code may have written to the elements, perhaps through a view

    @staticmethod
    def __new__(
        cls: Any, shape: tuple[int, ...], rules: Mask, written: torch.Tensor | None = None
    ) -> LazyMask:
        result = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool, device="cpu")
        result.rules, result.written, result.is_lent = rules, written, False
        return result

    def __init__(self, shape: tuple[int, ...], rules: Mask, written: Any = None) -> None:
        """torch requires __new__ to do all the work."""

    def dense(self) -> torch.Tensor:
        if self.written is None:
            batch, _, rows, keys = self.shape
            elements = self.rules.to_dense(rows, keys, batch).reshape(batch, 1, rows, keys)
            self.written = torch.from_numpy(elements)
        return self.written

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        """torch.compile calls this for a mask from outside the model, and traces its elements."""
        self.dense()
        return ["written"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: None, shape: Any, strides: Any) -> LazyMask:
        mask = LazyMask(shape, Mask(), inner["written"])
        mask.is_lent = True
        return mask

    def unchanged_rules(self) -> Mask | None:
        """Returns the rules; None if other code may have written to the elements."""
        return None if self.is_lent else self.rules

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<LazyMask {tuple(self.shape)} of {self.rules!r}>"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def plain(value: Any) -> Any:
            return value.dense() if isinstance(value, LazyMask) else value

        arguments = (args, kwargs or {})
        args, kwargs = torch.utils._pytree.tree_map(plain, arguments)
        result = func(*args, **kwargs)
        masks = [one for one in _leaves(arguments) if isinstance(one, LazyMask) and not one.is_lent]
        owners = {_memory(plain(one)): one for one in masks}
        for one in _leaves(result) if owners else []:
            if torch.is_tensor(one) and _memory(one) in owners:
                owners[_memory(one)].is_lent = True
        return result


def _leaves(tree: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(tree)


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Unknown(Exception):
    """Raised for a mask function that is not transformers', or that rules cannot express."""


class _Place:
    """Positions of a call's rows and keys in the whole sequence."""

    def __init__(
        self, q_offset: int, kv_offset: int, rows: int, keys: int, is_traced: bool = False
    ) -> None:
        self.is_traced = is_traced  # elements of tensors and the offset are unknown
        self.document_ids: torch.Tensor | None = None  # set only if is_traced
        self.is_remapped = False  # positions count within documents
        self.offset, self.first_key = q_offset - kv_offset, kv_offset
        self.rows, self.keys = rows, keys
        self.starts: tuple[int, ...] = ()  # first unpadded key of each sequence

    def rules(self, **arguments: Any) -> Mask:
        return Mask._from_rules(offsets=(self.offset,), **arguments)


def variables(function: Any) -> dict[str, Any]:
    cells = function.__closure__ or ()
    names = function.__code__.co_freevars
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}


def _rules_of(function: Any, place: _Place) -> Mask:
    """Returns the rules of a mask function of transformers.masking_utils."""
    if getattr(function, "__module__", "") != masking_utils.__name__:
        raise _Unknown
    name = function.__qualname__.partition(".<locals>")[0]
    arguments = variables(function)
    match name:
        case "causal_mask_function":
            return place.rules(causal=True)
        case "bidirectional_mask_function":
            return Mask()
        case "and_masks":
            return reduce(and_, (_rules_of(one, place) for one in arguments["mask_functions"]))
        case "sliding_window_overlay":
            return place.rules(window=(int(arguments["sliding_window"]) - 1, -1))
        case "sliding_window_bidirectional_overlay":
            return place.rules(window=(int(arguments["sliding_window"]),) * 2)
        case "chunked_overlay":
            return _chunks(int(arguments["chunk_size"]), arguments["left_padding"], place)
        case "packed_sequence_mask_function":
            return _documents(arguments["packed_sequence_mask"], place)
        case "remap_positions_for_packed_sequence":
            return _remapped(arguments["mask_function"], place)
    raise _Unknown


def _chunks(size: int, left_padding: torch.Tensor, place: _Place) -> Mask:
    """Rules count chunks from a sequence's first unpadded key."""
    if place.is_traced:
        raise _Unknown
    starts = left_padding.reshape(-1).numpy().astype(np.int64) - place.first_key
    if (starts != (place.starts or 0)).any():
        raise _Unknown
    return place.rules(chunks=(size, 0))


def _documents(ids: torch.Tensor, place: _Place) -> Mask:
    if place.is_traced and place.document_ids is None:
        place.document_ids = ids
        return Mask()
    if (
        place.is_traced
        or place.offset != 0
        or ids.shape[-1] != place.rows
        or place.rows != place.keys
    ):
        raise _Unknown
    return Mask.documents(ids.numpy())


def _remapped(function: Any, place: _Place) -> Mask:
    """Returns the rules of a mask function whose positions count within documents. The distance
    from row to key is the same within a document as in the sequence, so causal and window rules
    are the same.
    """
    place.is_remapped = True
    rules = _rules_of(function, place)
    if rules._rules.chunks is not None or place.offset != 0:
        raise _Unknown
    return rules


class GraphRules(NamedTuple):
    """The parts of a mask that a compiled or exported model passes to the operator."""

    is_causal: bool
    window: list[int] | None = None
    key_mask: torch.Tensor | None = None  # boolean (batch, keys)
    offset: torch.Tensor | None = None  # position of row 0 among the keys; None: 0
    document_ids: torch.Tensor | None = None  # (batch, length)

    def beside_array(self) -> GraphRules:
        """Replaces is_causal by a window up to the row, because the operator does not accept
        is_causal with an array.
        """
        if not self.is_causal:
            return self
        left = -1 if self.window is None else self.window[0]
        return GraphRules(False, [left, 0], self.key_mask, self.offset, self.document_ids)

    def options(self) -> dict[str, Any]:
        """Returns the fields by name. torch.compile cannot trace _asdict() in torch 2.8."""
        return dict(zip(GraphRules._fields, self, strict=True))


def _graph_rules(mask_function: Any, padding: Any, first_row: Any, first_key: int) -> GraphRules:
    place = _Place(0, 0, 0, 0, is_traced=True)
    rules = _rules_of(mask_function, place)._rules
    window = None if rules.window is None else list(rules.window)
    has_position = rules.causal or window is not None
    starts_at_0 = type(first_row) is int and first_row == first_key
    has_documents = place.document_ids is not None
    if (place.is_remapped and not has_documents) or (has_documents and not starts_at_0):
        raise _Unknown
    offset = torch.as_tensor(first_row) - first_key if has_position and not starts_at_0 else None
    return GraphRules(rules.causal, window, padding, offset, place.document_ids)


def _with_rules(
    mask: torch.Tensor | None, function: Any, padding: Any, first_row: Any, first_key: Any
) -> torch.Tensor | None:
    """Attaches the rules, if they can be read, to the mask. If all layers use the rules, the
    compiler drops the mask."""
    if mask is None or type(first_key) is not int or not can_read_functions():
        return mask
    try:
        padding = padding if padding is None else padding[:, first_key:]
        mask._maskwise_rules = _graph_rules(function, padding, first_row, first_key)
    except _Unknown:
        pass
    return mask


def can_read_functions() -> bool:
    """Whether a graph is traced and the tracer can read a mask function's variables: torch.compile
    since 2.15, and non-strict export, which runs Python."""
    is_dynamo = torch.compiler.is_dynamo_compiling()
    return torch.compiler.is_compiling() and (READS_MASKS or not is_dynamo)


def is_traced(*tensors: Any) -> bool:
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or is_in_mode()
        or not all(one is None or type(one) is LazyMask or is_plain(one) for one in tensors)
    )


def mask(
    batch_size: int,
    q_length: Any = None,
    kv_length: int = 0,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Any = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    **others: Any,
) -> torch.Tensor | None:
    """Returns the mask of one forward pass for all layers of one kind, such as sliding-window.

    transformers before 5.3 passes `cache_position`, the rows' positions, instead of q_length and
    q_offset.
    """
    arguments = {
        "batch_size": batch_size,
        "kv_length": kv_length,
        "kv_offset": kv_offset,
        "mask_function": mask_function,
        "attention_mask": attention_mask,
        **others,
    }
    positions = others.get("cache_position")
    if positions is None:
        arguments.update(q_length=q_length, q_offset=q_offset)
    rows = q_length if positions is None else positions.shape[0]

    device = positions.device if positions is not None else others.get("device", "cpu")
    facts = others.get("config"), others.get("dtype", torch.float32)
    is_torchs = torch.device(device).type != "cpu" or is_traced(attention_mask, positions)
    first_row = q_offset if positions is None else positions[0]
    # Tests is_torchs first, because reading a traced size would add a guard.
    if is_torchs or _is_small(batch_size * rows, kv_length, *facts):
        written = masking_utils.sdpa_mask(**arguments)
        if positions is not None and statically_known_true(rows == kv_length):
            first_row = kv_offset  # no keys are cached
        return _with_rules(written, mask_function, attention_mask, first_row, kv_offset)
    first_row = int(first_row)
    place = _Place(first_row, int(kv_offset), rows, kv_length)
    shape = (batch_size, 1, rows, kv_length)
    try:
        padding = padding_rules(attention_mask, kv_length, place.first_key)
        place.starts = padding._rules.starts
        return LazyMask(shape, _rules_of(mask_function, place) & padding)
    except (_Unknown, ValueError):
        arguments.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
        written = masking_utils.sdpa_mask(**arguments)
        return LazyMask(shape, Mask.dense(written), written)


def _is_small(rows: int, keys: int, config: Any, dtype: torch.dtype) -> bool:
    """Whether attention() will probably find the call too small. There is no query yet, so the
    config's hidden_size, else 1024, stands for heads * depth."""
    width = getattr(config, "hidden_size", None)
    return is_small(rows * (width if isinstance(width, int) else 1024), keys, dtype)
