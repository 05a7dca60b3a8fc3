"""Models in OpenVINO with Maskwise's extension and without, in turns, in one process: Select
alone, the cost of a call on few elements, and what an extension leaves to OpenVINO's own fusions.
A line for each case, and one for each target missed.

Started by `scripts/bench openvino`, which has the package built. build/bench/openvino.json keeps
the times.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
from cases import Case, dense, shape_table
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
Change = Callable[[ov.Model], ov.Model]


def taken(model: ov.Model) -> ov.Model:
    return maskwise.openvino.accelerate(model)


def forced(model: ov.Model) -> ov.Model:
    return maskwise.openvino.accelerate(model, force=True)


def models() -> Iterator[tuple[Model, Change]]:
    for dtype in ("f32", "f16"):
        for case in shape_table():
            made = where_of(case, dtype, 0)
            if made.name.endswith((f"{LARGE} {LARGE} random", f"{LARGE} {LARGE} padding")):
                made.least = LEAST_ALONE
                yield made, taken
    flat = dense((1024,))
    small = where_of(Case("small", "", flat, flat, flat, flat), "f32", 1 << 30)
    small.least = LEAST
    yield small, taken
    small.name += ", forced"
    yield small, forced
    blocks = [make(rows) for rows in (512, 1024) for make in (sdpa_model, masked_fill_model)]
    for made, least in ((chain_model(), LEAST_OF_CHAIN), *((block, LEAST) for block in blocks)):
        made.least = least
        yield made, taken


def bound(model: ov.Model, inputs: Inputs) -> tuple[Callable[[], object], Any]:
    """A call of the request that allocates nothing of Python's, and its answer."""
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
        "ENABLE_CPU_PINNING": False,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = ov.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, ov.Tensor(np.ascontiguousarray(array).reshape(array.shape)))
    request.infer(share_outputs=True)
    answer = np.array(request.get_output_tensor(0).data)
    return lambda: request.infer(share_outputs=True), answer


def measure(made: Model, change: Change) -> Measured:
    read = ov.Core().read_model(bytes_of(made))
    calls, answers = zip(
        *(bound(model, made.inputs) for model in (read, change(read.clone()))), strict=True
    )
    if not np.allclose(*answers, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise SystemExit(f"{made.name}: another answer with Maskwise")
    return compare(made.name, made.dtype, calls, made.least)


def main() -> int:
    cases = (
        (f"{made.name} {made.dtype}", lambda made=made, change=change: measure(made, change))
        for made, change in models()
    )
    return run_suite("openvino", "OpenVINO", ov.get_version().split("-")[0], cases)


if __name__ == "__main__":
    sys.exit(main())
