"""Measures published language models, exported by PyTorch, in OpenVINO with and without Maskwise,
in turns in one process. Prints a line per model, batch and length.

Started by `scripts/bench openvino --models`, which builds the package and exports the models.
Writes build/bench/openvino_models.json.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import maskwise.openvino
import model_text
import numpy as np
import openvino as ov
from extension import SETTINGS
from machine import ROOT
from table import time_text
from turns import Measured, medians, ratio_of, run_suite, seconds_a_call

LEAST = 0.98
WANTED = {("gpt2", 1, 512): 1.1, ("modernbert", 1, 1024): 1.3, ("modernbert", 1, 4096): 2.0}
LONGEST = {
    "distilbert": 512,
    "modernbert": 4096,
}  # maximum tokens per sequence; 1024 for other models
SHAPES = ((1, 128), (1, 512), (1, 1024), (1, 4096), (8, 128), (8, 512))
SECONDS = 6.0  # approximate time per case
HEAD = ["model", "batch x tokens", "attentions", "", "with Maskwise", "times faster", "apart"]
Inputs = dict[str, Any]


def made_up(model: ov.Model, batch: int, tokens: int) -> Inputs:
    """Returns random inputs. A batch is padded on the right; its shortest sequence has half of the
    tokens."""
    random = np.random.default_rng(0)
    inputs: Inputs = {}
    for one in model.inputs:
        shape = [
            {0: batch, 1: tokens}.get(place, 0) if extent.is_dynamic else extent.get_length()
            for place, extent in enumerate(one.partial_shape)
        ]
        if "mask" in one.any_name:
            lengths = tokens - tokens * np.arange(batch) // (2 * max(batch - 1, 1))
            inputs[one.any_name] = (np.arange(tokens) < lengths[:, None]).astype(np.int64)
        elif one.element_type == ov.Type.i64:
            inputs[one.any_name] = random.integers(0, 30_000, shape)
        else:
            inputs[one.any_name] = random.standard_normal(shape).astype(np.float32)
    return inputs


def unmasked_tokens(inputs: Inputs, answer: Any) -> Any:
    """Returns the answers for unmasked tokens. For T5's decoder, returns all answers, because its
    attention_mask masks the encoder's tokens."""
    mask = inputs.get("attention_mask")
    is_of_answer = mask is not None and "decoder_input_ids" not in inputs
    return answer[mask.astype(bool)] if is_of_answer else answer


def measure(compiled: Any, name: str, batch: int, tokens: int) -> Measured:
    inputs = made_up(compiled[0], batch, tokens)
    requests = [one.create_infer_request() for one in compiled]

    def call(request: Any) -> Callable[[], object]:
        return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)

    calls = [call(request) for request in requests]
    for each in calls:
        each()
    answers = [unmasked_tokens(inputs, np.array(one.get_output_tensor(0).data)) for one in requests]
    apart = float(np.abs(answers[0] - answers[1]).max())
    if not apart < 2e-5:
        raise SystemExit(f"{name} {batch} x {tokens}: the answers differ by {apart}")
    count = max(3, min(15, int(SECONDS / 2 / seconds_a_call(calls[0]))))
    turns = [list(map(seconds_a_call, calls)) for _ in range(count)]
    ratio = ratio_of(turns)
    nodes = compiled[1].get_runtime_model().get_ordered_ops()
    taken = sum(node.get_rt_info()["layerType"].astype(str) == "Reference" for node in nodes)
    least = WANTED.get((name.split("-")[0], batch, tokens), LEAST)
    row = [name, f"{batch} x {tokens}", str(taken), *map(time_text, medians(turns))]
    missed = f"{ratio:.2f} times as fast, {least} wanted" if ratio < least else ""
    return [*row, f"{ratio:.2f}", f"{apart:.0e}"], missed


def cases(paths: list[Path]) -> Iterator[tuple[str, Callable[[], Measured]]]:
    for path in paths:
        content = model_text.read(path).SerializeToString()
        core = ov.Core()
        compiled: list[Any] = []

        def both(compiled: Any = compiled, content: bytes = content, core: Any = core) -> Any:
            if not compiled:
                stock = core.read_model(content, b"")
                accelerated = maskwise.openvino.accelerate(stock, precision="f32")
                compiled += [
                    core.compile_model(one, "CPU", SETTINGS) for one in (stock, accelerated)
                ]
            return compiled

        for batch, tokens in SHAPES:
            if tokens <= LONGEST.get(path.stem.split("-")[0], 1024):
                run = lambda b=batch, w=tokens, n=path.stem, both=both: measure(both(), n, b, w)  # noqa: E731
                yield f"{path.stem} {batch} x {tokens}", run


def main() -> int:
    paths = sorted((ROOT / "build/models").glob("*-torchscript.json"))
    version = ov.get_version().split("-")[0]
    return run_suite("openvino_models", "OpenVINO", version, cases(paths), HEAD)


if __name__ == "__main__":
    sys.exit(main())
