"""torch.ops.maskwise.attention, for torch.compile, export, autograd, vmap and autocast."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,untyped-decorator,unused-ignore"

from __future__ import annotations

import itertools
from functools import cmp_to_key
from typing import Any

from maskwise import _torch_version  # raises if torch is too old for the imports below

# isort: split
import numpy as np
import torch
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from maskwise import _torch_gradients
from maskwise._call import (
    OPERATOR_FIELDS,
    AttentionCall,
    checked,
    has_rules,
    window_mask,
    with_arrays,
)
from maskwise._native import run_if_readable, run_native, run_native_gradients
from maskwise._torch_masks import Elements, mask_of, with_array
from maskwise._torch_reference import (
    TENSORS,
    gradients_of,
    kept_by_rules,
    own_dimensions,
    reference,
    result_shape,
    tensor_of,
    with_window,
    without_rules,
)
from maskwise._torch_tensors import is_followed, is_in_mode, want_gradients

TYPES = {  # from AttentionCall's annotations to types of torch's schemas
    "Array": "Tensor",
    "ArrayOrNone": "Tensor?",
    "bool": "bool",
    "float | None": "float?",
    "Window | None": "int[]?",
}
SMALL = ("key_mask", "offset", "document_ids", "mask_rules")  # tensors that become rules


def _schema(result: str, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> str:
    arguments = [*first]
    for name in OPERATOR_FIELDS:
        default = AttentionCall._field_defaults
        kind = TYPES[AttentionCall.__annotations__[name].__forward_arg__]
        has_default = name in default and not last
        arguments.append(f"{kind} {name}" + (f"={default[name]}" if has_default else ""))
    return f"({', '.join((*arguments, *last))}) -> {result}"


def empty_result(call: AttentionCall) -> torch.Tensor:
    return _empty_in_order(call.query, result_shape(call))


def _empty_in_order(operand: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Returns an empty tensor in the layout of attention's result: adjacent columns, other
    dimensions in the operand's memory order.
    """
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # needed only in traces

    last = len(shape) - 1
    steps = (*(0,) * (last + 1 - operand.ndim), *operand.stride())

    def compare(one: int, other: int) -> int:
        """Dimensions of stride 0 come first. Dimensions with unknown strides stay in order."""
        repeated = [guard_or_false(steps[axis] == 0) for axis in (one, other)]
        if any(repeated):
            return int(repeated[1]) - int(repeated[0])
        more, less = steps[one] > steps[other], steps[one] < steps[other]
        return int(guard_or_false(less)) - int(guard_or_false(more))

    order = (*sorted(range(last), key=cmp_to_key(compare)), last)
    return torch.empty_permuted(shape, order, dtype=operand.dtype, device=operand.device)


def operator_arguments(call: AttentionCall) -> list[Any]:
    """The operator's arguments. torch.compile of torch 2.8 cannot slice a NamedTuple."""
    return [getattr(call, name) for name in OPERATOR_FIELDS]


_torch_version.add_to_cache_keys(_schema("Tensor"))


@torch.library.custom_op(
    "maskwise::attention", mutates_args=(), schema=_schema("Tensor"), device_types="cpu"
)
def attention(*operands: Any) -> torch.Tensor:
    """The operator. Its arguments are the first fields of AttentionCall."""
    return run_native(_native_call(AttentionCall(*operands)))


@attention.register_fake
def _(*operands: Any) -> torch.Tensor:
    return empty_result(AttentionCall(*operands))


@torch.library.custom_op(
    "maskwise::attention_with_statistics",
    mutates_args=(),
    schema=_schema("(Tensor, Tensor)"),
    device_types="cpu",
)
def attention_with_statistics(*operands: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The operator for calls that need a gradient; also returns log(sum of exp(score)) per row."""
    return run_native(_native_call(AttentionCall(*operands)).changed(return_statistics=True))


@attention_with_statistics.register_fake
def _(*operands: Any) -> tuple[torch.Tensor, torch.Tensor]:
    call = AttentionCall(*operands)
    rows = result_shape(call)[:-1]
    return empty_result(call), call.query.new_empty(rows, dtype=torch.float32)


@torch.library.custom_op(
    "maskwise::attention_gradients",
    mutates_args=(),
    schema=_schema(
        "(Tensor, Tensor, Tensor, Tensor, Tensor)",
        ("Tensor result", "Tensor statistics", "Tensor gradient"),
        ("bool wants_mask", "bool wants_sinks"),
    ),
    device_types="cpu",
)
def attention_gradients(
    result: torch.Tensor,
    statistics: torch.Tensor,
    gradient: torch.Tensor,
    *operands: Any,
) -> tuple[torch.Tensor, ...]:
    """Returns gradients of query, key and value, with the result's leading dimensions. Also returns
    float32 gradients of mask and sinks; empty if not wanted."""
    call = AttentionCall(*operands[:-2])
    wants_mask, wants_sinks = operands[-2:]
    gradients = run_native_gradients(
        _native_call(call), (result, statistics, gradient), wants_mask, wants_sinks
    )
    *input_gradients, mask_gradient, sink_gradient = gradients
    if wants_mask:  # a key_mask with gaps may have broadcast attn_mask
        mask_gradient = mask_gradient.sum_to_size(call.attn_mask.shape)
    optional = (mask_gradient, sink_gradient)
    return (*input_gradients, *(statistics.new_empty(0) if x is None else x for x in optional))


@attention_gradients.register_fake
def _(
    result: torch.Tensor,
    statistics: torch.Tensor,
    gradient: torch.Tensor,
    *operands: Any,
) -> tuple[torch.Tensor, ...]:
    call = AttentionCall(*operands[:-2])
    wants_mask, wants_sinks = operands[-2:]
    count = own_dimensions(call)
    leading = result.shape[:-count]
    inputs = (_empty_in_order(one, (*leading, *one.shape[-count:])) for one in call[:3])
    optional = (
        statistics.new_empty(one.shape if wants else 0)
        for one, wants in ((call.attn_mask, wants_mask), (call.sinks, wants_sinks))
    )
    return (*inputs, *optional)


def _native_call(call: AttentionCall) -> AttentionCall:
    """Returns the call with its small tensors converted to rules."""
    if forward_ad._current_level >= 0:
        raise NotImplementedError("torch.ops.maskwise.attention has no forward-mode derivatives")
    if call.key_mask is call.offset is call.document_ids is call.mask_rules is None:
        return checked(call)
    window = None if call.window is None else tuple(call.window)
    offset = None if call.offset is None else int(call.offset)
    small = map(Elements.from_tensor, (call.document_ids, call.key_mask, call.mask_rules))
    mask = mask_of(call.is_causal, window, offset, *small, call.key.shape[-2])
    if call.attn_mask is not None:
        mask = with_array(mask, call.attn_mask.detach())
    return checked(call.changed(attn_mask=mask, is_causal=False, window=None))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    is_tensor = [torch.is_tensor(one) for one in inputs]
    ctx.is_tensor = is_tensor
    ctx.options = [None if is_one else one for one, is_one in zip(inputs, is_tensor, strict=True)]
    ctx.save_for_backward(*output, *itertools.compress(inputs, is_tensor))


def _backward(ctx: Any, gradient: torch.Tensor, _: Any) -> tuple[Any, ...]:
    """Maskwise computes gradients. torch computes gradients of gradients."""
    result, statistics, *saved = ctx.saved_tensors
    tensors = iter(saved)
    operands = [
        next(tensors) if is_one else one
        for one, is_one in zip(ctx.options, ctx.is_tensor, strict=True)
    ]
    # torch may omit the last entries of needs_input_grad.
    needs = (*ctx.needs_input_grad, *(False,) * len(OPERATOR_FIELDS))
    wanted = {
        name: name in TENSORS and wants for name, wants in zip(OPERATOR_FIELDS, needs, strict=False)
    }
    call = AttentionCall(*operands)

    def compute() -> tuple[torch.Tensor, ...]:
        outputs = (result, statistics, gradient)
        wants = (wanted["attn_mask"], wanted["sinks"])
        return torch.ops.maskwise.attention_gradients(*outputs, *operator_arguments(call), *wants)

    tensors_by_name = {name: getattr(call, name) for name in TENSORS}
    gradients = gradients_of(call, tensors_by_name, wanted, gradient, compute)
    return tuple(gradients.get(name) for name in itertools.islice(OPERATOR_FIELDS, len(operands)))


attention_with_statistics.register_autograd(_backward, setup_context=_save)


def _with_sums_for_gradients(*operands: Any) -> torch.Tensor:
    """Saves the rows' statistics if a gradient is needed. If torch tracks nothing, calls the core
    without another dispatch."""
    call = AttentionCall(*operands)
    if not is_in_mode():
        result = run_if_readable(_native_call(call), refuses_gradients=True)
        if result is not None:
            return result
    if want_gradients(one for one in map(call.__getattribute__, TENSORS) if one is not None):
        return torch.ops.maskwise.attention_with_statistics(*operands)[0]
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.maskwise.attention(*operands)


for key in ("AutogradCPU", "AutogradMeta"):  # torch <= 2.10: custom_op registers "Autograd"
    torch.library.impl("maskwise::attention", key)(_with_sums_for_gradients)


def _autocast(one: Any) -> Any:
    """Casts like torch's attention under autocast: CPU floats except float64."""
    is_cast = torch.is_tensor(one) and one.is_floating_point() and one.device.type == "cpu"
    return one.to(torch.get_autocast_dtype("cpu")) if is_cast and one.dtype != torch.double else one


@torch.library.impl("maskwise::attention", "AutocastCPU")
def _(*operands: Any) -> Any:
    cast = map(_autocast, operands)
    with torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    ):
        return torch.ops.maskwise.attention(*cast)


@attention.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *operands: Any) -> tuple[torch.Tensor, int]:
    """Moves mapped dimensions first, followed by dimensions of 1, so that mapped operands have
    equally many broadcast dimensions."""
    call = AttentionCall(*operands)
    mapped = dict.fromkeys(OPERATOR_FIELDS) | dict(zip(OPERATOR_FIELDS, in_dims, strict=False))
    if call.mask_rules is not None and call.attn_mask is None:
        one = [
            value if dim is None else value.select(dim, 0)
            for value, dim in zip(call, in_dims, strict=False)
        ]
        call = call.changed(attn_mask=kept_by_rules(AttentionCall(*one)), mask_rules=None)
    if any(getattr(call, name) is not None for name in SMALL):
        raise NotImplementedError(
            "torch.ops.maskwise.attention in vmap takes no key_mask, offset or document_ids, "
            "and no mask_rules with attn_mask"
        )
    tensors = {name: getattr(call, name) for name in TENSORS}
    ranks = {  # numbers of broadcast dimensions
        name: 0 if one is None else one.ndim - (mapped[name] is not None) - TENSORS[name]
        for name, one in tensors.items()
    }
    most = max(ranks.values())

    def moved(name: str, one: Any) -> Any:
        if one is None or mapped[name] is None:
            return one
        first = one.movedim(mapped[name], 0)
        return first.reshape(first.shape[0], *(1,) * (most - ranks[name]), *first.shape[1:])

    call = call.changed(**{name: moved(name, one) for name, one in tensors.items()})
    if all(mapped[name] is None for name in ("query", "key", "value")):
        ones = (1,) * (most - ranks["query"])
        call = call.changed(query=call.query.expand(info.batch_size, *ones, *call.query.shape))
    return call_operator(call), 0


def call_operator(call: AttentionCall) -> torch.Tensor:
    return torch.ops.maskwise.attention(*operator_arguments(call))


def run_as_torch_op(call: AttentionCall) -> Any:
    """Runs maskwise.attention of tensors that torch tracks."""
    needs_core = call.out is not None or call.return_statistics or call.explains
    if torch.compiler.is_dynamo_compiling() and (needs_core or _is_unread(call.attn_mask)):
        return _between_graphs(call)
    call = with_arrays(call, tensor_of)
    if torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling():
        with torch.autocast("cpu", enabled=False):
            return _run_again(with_arrays(call, _autocast))
    if call.explains:  # returns no tensor
        return run_native(call)
    if needs_core:
        raise BufferError(
            "out and return_statistics need tensors that torch does not track for gradients"
        )
    if call.is_packed:
        q, k, v = (one.swapaxes(0, 1) for one in call[:3])
        call = call.changed(query=q, key=k, value=v)
    if has_rules(call.attn_mask):
        if _torch_gradients.can_run(call):
            result = _torch_gradients.run(call.changed(is_packed=False))
            return result.swapaxes(0, 1) if call.is_packed else result
        is_graph = torch.compiler.is_compiling()
        call = _with_rule_numbers(call) if is_graph else without_rules(call)
    if call.window is not None:
        bounds: Any = call.window
        if not torch.compiler.is_compiling():
            bounds = window_mask(bounds)._rules.window  # raises if the window is invalid
        call = call.changed(window=list(bounds))
    result = _call_or_compute(call)
    return result.swapaxes(0, 1) if call.is_packed else result


def _is_strict_export() -> bool:
    """Whether torch traces a strict export, in which NumPy arrays from outside the model have no
    elements."""
    return torch.compiler.is_exporting() and torch.compiler.is_dynamo_compiling()


def _is_unread(mask: Any) -> bool:
    """Whether torch._dynamo cannot put the Mask into a graph."""
    is_lost = has_rules(mask) and type(mask._array) is np.ndarray and _is_strict_export()
    return is_lost or (has_rules(mask) and not _torch_version.READS_MASKS)


def _with_rule_numbers(call: AttentionCall) -> AttentionCall:
    mask = with_window(call)
    rules = mask._rules
    numbers = np.array(rules.listed(), np.int64) if _is_strict_export() else rules.numbers
    numbers = torch.from_numpy(numbers)
    return call.changed(attn_mask=mask._array, mask_rules=numbers, window=None)


def _call_or_compute(call: AttentionCall) -> torch.Tensor:
    """Runs the operator. In forward mode, runs torch's operators, because the operator has no
    tangents."""
    if forward_ad._current_level < 0:
        return call_operator(call)
    with sdpa_kernel(SDPBackend.MATH):
        return reference(call)


def _run_again(call: AttentionCall) -> Any:
    return run_as_torch_op(call) if is_followed(call) else run_native(call)


@torch.compiler.disable(
    reason="no graph can contain attention's out or statistics, a Mask before torch 2.15, or "
    "Mask.dense in a strict export: pass is_causal, window or an array"
)
def _between_graphs(call: AttentionCall) -> Any:
    """Runs between the graphs of a compiled model."""
    return _run_again(call)
