"""AttentionCall: the arguments of attention as one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from maskwise import _arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskwise._mask import Mask

ArrayOrNone = Any
Array = Any  # anything for numpy.asarray, a torch tensor or a DLPack array
Window = tuple[int, int] | list[int]
LEAST_CAP = 1e-30  # with a smaller cap, score / soft_cap overflows float32


class AttentionCall(NamedTuple):
    """The fields from `query` to `deterministic` are the arguments of torch.ops.maskwise.attention,
    in order. Their annotations determine the operator's schema.
    """

    query: Array
    key: Array
    value: Array
    attn_mask: ArrayOrNone = None  # or a Mask, except in the operator
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False
    soft_cap: float | None = None  # 0: no cap
    window: Window | None = None
    sinks: ArrayOrNone = None
    key_mask: ArrayOrNone = None  # boolean (batch, keys); keys past the mask's end are masked
    offset: ArrayOrNone = None  # position of row 0 among the keys
    document_ids: ArrayOrNone = None  # (batch, length): a row keeps the keys with the row's id
    mask_rules: ArrayOrNone = None  # a Mask's rules as integers; attn_mask has the Mask's array
    deterministic: bool = False  # a row's bits depend on no other row and on no masked key
    # Not arguments of the operator:
    out: Any = None
    return_statistics: bool = False
    is_packed: bool = False  # query, key, value and out are (rows, heads, depth)
    explains: bool = False  # counts tiles instead of computing
    # int32 (batch, pages): key and value are paged, (pages, heads, keys per page, depth)
    page_table: ArrayOrNone = None

    def changed(self, **fields: Any) -> AttentionCall:
        """Like _replace, which torch.compile of torch 2.8 cannot trace."""
        before = dict(zip(AttentionCall._fields, self, strict=True))
        return AttentionCall(**{**before, **fields})


FLAGS = ("is_causal", "enable_gqa", "return_statistics", "deterministic")
OPERATOR_FIELDS = AttentionCall._fields[: AttentionCall._fields.index("deterministic") + 1]


def has_rules(mask: Any) -> bool:
    """Whether `mask` is a Mask. Does not import Mask's module, which most programs do not need."""
    return mask is not None and hasattr(type(mask), "_rules")


def mask_array(call: AttentionCall) -> Any:
    """Returns the mask's array; None if there is no mask, or a Mask without an array."""
    return call.attn_mask._array if has_rules(call.attn_mask) else call.attn_mask


def with_arrays(call: AttentionCall, convert: Callable[[Any], Any]) -> AttentionCall:
    """Applies `convert`, which must accept None, to query, key, value, sinks and the mask's
    array."""
    mask = call.attn_mask
    if has_rules(mask):
        mask = mask if mask._array is None else mask._beside(convert(mask._array), mask._maps)
    else:
        mask = convert(mask)
    query, key, value, sinks = map(convert, (call.query, call.key, call.value, call.sinks))
    return call.changed(query=query, key=key, value=value, attn_mask=mask, sinks=sinks)


def checked(call: AttentionCall) -> AttentionCall:
    """Checks the options, and converts them to their types. Raises TypeError and ValueError."""
    changes: dict[str, Any] = {}
    if not (
        type(call.is_causal)
        is type(call.enable_gqa)
        is type(call.return_statistics)
        is type(call.deterministic)
        is bool
    ):
        for name in FLAGS:
            changes[name] = _arguments.flag(name, getattr(call, name))
    if call.scale is not None and type(call.scale) is not float:
        changes["scale"] = _arguments.number("scale", call.scale)
    if call.soft_cap is not None:
        changes["soft_cap"] = _checked_cap(call.soft_cap)
    if call.window is not None:
        require_sides("window", call.window)
    if call.attn_mask is not None and type(call.attn_mask).__name__ == "CausalBias":
        changes["attn_mask"] = _mask_of_bias(call)
    if changes:
        call = call.changed(**changes)
    if call.is_causal and call.attn_mask is not None:
        hint = ": use Mask.causal() & mask" if has_rules(call.attn_mask) else ""
        raise ValueError(f"attn_mask and is_causal=True exclude each other{hint}")
    return call


def _checked_cap(soft_cap: Any) -> float:
    cap = _arguments.number("soft_cap", soft_cap)
    if 0 < abs(cap) < LEAST_CAP:
        raise ValueError(f"soft_cap is {cap}, expected 0 for none, or at least {LEAST_CAP}")
    return cap


def require_sides(name: str, window: Any) -> None:
    if not (isinstance(window, (tuple, list)) and len(window) == 2):
        raise TypeError(f"{name} is {_arguments.shown(window)}, expected (left, right)")


def _mask_of_bias(call: AttentionCall) -> Mask:
    """Converts torch's CausalBias."""
    from maskwise._mask import Mask

    bias = call.attn_mask
    shape = (call.query.shape[-2], call.key.shape[-2])
    shape_of_bias = (bias.seq_len_q, bias.seq_len_kv)
    if shape != shape_of_bias:
        raise ValueError(f"a causal bias has {shape_of_bias} rows and keys, the call has {shape}")
    return Mask.causal(from_end=bias.variant.name == "LOWER_RIGHT")


def window_mask(window: Window) -> Mask:
    from maskwise._mask import Mask

    return Mask.window(*window)
