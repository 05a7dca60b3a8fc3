"""Measures models in OpenVINO with and without Maskwise, in turns in one process: Select on large
operands and on few elements; scale, mask and Softmax; attention with typical masks. Prints a line
per case and per missed target.

Started by `scripts/bench openvino`, which builds the package. Writes build/bench/openvino.json.
"""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
from cases import Case, dense, shape_table
from openvino import opset13 as ops
from sessions import (
    Inputs,
    Model,
    bytes_of,
    chain_model,
    masked_fill_model,
    sdpa_model,
    where_of,
)
from turns import Measured, compare, run_suite

LARGE = "16x16x256x256"
LEAST_ALONE, LEAST_OF_CHAIN, LEAST = 1.5, 1.2, 0.95
LENGTHS, DEPTHS = (16, 64, 128, 512, 1024), (32, 64, 128, 256)
LEAST_OF_ATTENTION = {"causal": 2.0, "padding, a quarter masked": 1.4, "1 of 8 tiles kept": 6.0}
SETTINGS = {
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": 1,
    "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
    "ENABLE_CPU_PINNING": False,
    "INFERENCE_PRECISION_HINT": "f32",
}
Change = Callable[[ov.Model], ov.Model]
Named = tuple[str, Callable[[], Measured]]


def taken(model: ov.Model) -> ov.Model:
    return maskwise.openvino.accelerate(model, precision="f32")


def forced(model: ov.Model, precision: str = "f32") -> ov.Model:
    return maskwise.openvino.accelerate(model, force=True, precision=precision)


def models() -> Iterator[tuple[Model, Change]]:
    for case in shape_table():
        measured_model = where_of(case, "f32", 0)
        if measured_model.name.endswith((f"{LARGE} {LARGE} random", f"{LARGE} {LARGE} padding")):
            measured_model.least = LEAST_ALONE
            yield measured_model, taken
    flat = dense((1024,))
    small = where_of(Case("small", "", flat, flat, flat, flat), "f32", 1 << 30)
    small.least = LEAST
    yield small, taken
    small.name += ", forced"
    yield small, forced
    blocks = [make(rows) for rows in (512, 1024) for make in (sdpa_model, masked_fill_model)]
    for measured_model, least in (
        (chain_model(), LEAST_OF_CHAIN),
        *((block, LEAST) for block in blocks),
    ):
        measured_model.least = least
        yield measured_model, taken


def mask_shape(mask: str, length: int) -> tuple[int, ...]:
    return (1, 1, 1 if mask.startswith("padding") else length, length)


def bias_of(mask: str, length: int) -> Any:
    """Returns 0 for unmasked keys, -infinity for masked keys."""
    rows, keys = np.arange(length)[:, None], np.arange(length)
    kept = {
        "a mask that keeps all": rows >= 0,
        "padding, a quarter masked": keys[None] < 0.75 * length,
        "causal": keys <= rows,
        "1 of 8 tiles kept": rows * 8 // length == keys * 8 // length,
    }[mask]
    bias = np.where(np.broadcast_to(kept, mask_shape(mask, length)[2:]), 0, -np.inf)
    return bias.astype(np.float32).reshape(mask_shape(mask, length))


def attention_model(heads: int, length: int, depth: int, mask: str) -> ov.Model:
    """Returns ScaledDotProductAttention between a layer's Transposes. As in exported models, the
    mask is a bias."""
    inputs = [ops.parameter([1, length, heads, depth], ov.Type.f32, name=name) for name in "qkv"]
    operands = [ops.transpose(one, [0, 2, 1, 3]) for one in inputs]
    if mask != "no mask":
        bias = ops.parameter(list(mask_shape(mask, length)), ov.Type.f32, name="c")
        inputs.append(bias)
        operands.append(bias)
    attention = ops.scaled_dot_product_attention(*operands)
    return ov.Model([ops.transpose(attention, [0, 2, 1, 3])], inputs)


def attention_case(heads: int, length: int, depth: int, mask: str, hint: str) -> Named:
    name = f"attention {heads}x{length}x{depth}, {mask}"
    is_claimed = length > 64  # Maskwise needs at least 9216 scores per head: docs/openvino.md
    least = LEAST if is_claimed else 0.0
    if (heads, length, depth, hint) == (12, 1024, 64, "f32"):
        least = LEAST_OF_ATTENTION.get(mask, LEAST)

    def measure() -> Measured:
        random = np.random.default_rng(5)
        shape = (1, length, heads, depth)
        inputs = {n: random.standard_normal(shape).astype(np.float32) for n in "qkv"}
        if mask != "no mask":
            inputs["c"] = bias_of(mask, length)
        stock = attention_model(heads, length, depth, mask)
        return measure_both(name, hint, stock, forced(stock, hint), inputs, least, hint)

    return f"{name} {hint}", measure


def attentions() -> Iterator[Named]:
    masks = ("no mask", "a mask that keeps all", *reversed(LEAST_OF_ATTENTION))
    hints = ["f32"]
    if "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        hints.append("bf16")
    for hint in hints:
        for length in LENGTHS:
            yield from (attention_case(12, length, 64, mask, hint) for mask in masks)
        for depth in DEPTHS:
            if depth != 64:
                yield from (attention_case(4, 512, depth, mask, hint) for mask in masks)


def bound(model: ov.Model, inputs: Inputs, hint: str) -> tuple[Callable[[], object], Any]:
    """Returns a call that runs the model without allocating outputs, and the model's answer."""
    settings = {**SETTINGS, "INFERENCE_PRECISION_HINT": hint}
    compiled = ov.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, ov.Tensor(np.ascontiguousarray(array).reshape(array.shape)))
    request.infer(share_outputs=True)
    answer = np.array(request.get_output_tensor(0).data)
    return lambda: request.infer(share_outputs=True), answer


def measure_both(
    name: str,
    dtype: str,
    stock: ov.Model,
    accelerated: ov.Model,
    inputs: Inputs,
    least: float,
    hint: str = "f32",
) -> Measured:
    calls, answers = zip(
        *(bound(model, inputs, hint) for model in (stock, accelerated)), strict=True
    )
    off = 1e-5 if hint == "f32" else 0.05
    if not np.allclose(*answers, rtol=10 * off, atol=off, equal_nan=True):
        raise SystemExit(f"{name}: the answers with and without Maskwise differ")
    return compare(name, dtype, calls, least)


def measure(tested: Model, change: Change) -> Measured:
    read = ov.Core().read_model(bytes_of(tested))
    return measure_both(tested.name, tested.dtype, read, change(read), tested.inputs, tested.least)


def main() -> int:
    cases: Iterator[Named] = (
        (
            f"{tested.name} {tested.dtype}",
            lambda tested=tested, change=change: measure(tested, change),
        )
        for tested, change in models()
    )
    version = ov.get_version().split("-")[0]
    return run_suite("openvino", "OpenVINO", version, itertools.chain(cases, attentions()))


if __name__ == "__main__":
    sys.exit(main())
