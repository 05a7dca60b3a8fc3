"""Measures transformers models with published widths and few layers. SDPA, eager attention and
Maskwise take turns in one process on torch's threads.

Started by scripts/bench transformers, which installs and builds everything.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import maskwise.transformers  # noqa: F401  # registers "maskwise"
import torch
import transformers
from table import begin_suite, save_table, shown
from token_models import MODELS, Model, make
from worker import ROOT

TURNS, SECONDS = 5, 40.0  # after SECONDS, no turn of a case starts
LONGEST_EAGER = 2048  # maximum tokens per batch, because eager attention stores all scores
HEAD = ["model", "batch x tokens", "type", "SDPA, ms", "eager", "Maskwise"]
HEAD += ["times as fast as SDPA", "as the fastest other", "apart"]
Run = Callable[[], Any]


def run_of(model: Model, module: Any, name: str, inputs: dict[str, Any]) -> Run:
    """Returns a forward pass in the model's form, with the attention `name`."""
    module.set_attn_implementation(name)
    if model.form == "exported":
        program = torch.export.export(module, (), inputs, strict=False).module()
        return lambda: program(**inputs)
    call = torch.compile(module) if model.form == "compiled" else module

    def run() -> Any:
        module.set_attn_implementation(name)
        return call(**inputs)

    return run


def forms_of(model: Model, module: Any, length: int) -> dict[str, Run]:
    """Returns forward passes by name. "sdpa" is the reference."""
    dtype = next(module.parameters()).dtype
    inputs = model.inputs(length, dtype)
    torch._dynamo.reset()
    forms = {
        "sdpa": run_of(model, module, "sdpa", inputs),
        "maskwise": run_of(model, module, model.attention, model.own_inputs(length, dtype)),
    }
    if model.batch * length <= LONGEST_EAGER and model.form == "eager":
        forms["eager"] = run_of(model, module, "eager", inputs)
    return forms


def timed(run: Run) -> tuple[float, Any]:
    begin = time.perf_counter()
    answer = run()
    return 1e3 * (time.perf_counter() - begin), answer


def measure(model: Model, module: Any, length: int) -> tuple[dict[str, float], float]:
    """Returns median milliseconds by name, and the largest difference between Maskwise's and SDPA's
    results for unmasked tokens."""
    forms = forms_of(model, module, length)
    answers = {name: model.tokens(run(), length, name) for name, run in forms.items()}
    apart = (answers["sdpa"] - answers["maskwise"]).abs().max().item()
    taken: dict[str, list[float]] = {name: [] for name in forms}
    begin, turn = time.monotonic(), 0
    while turn < TURNS or (time.monotonic() - begin < 3 and turn < 10 * TURNS):
        for name in [*forms][:: 1 if turn % 2 == 0 else -1]:
            taken[name].append(timed(forms[name])[0])
        turn += 1
        if time.monotonic() - begin > SECONDS:
            break
    return {name: statistics.median(times) for name, times in taken.items()}, apart


def row_of(
    model: Model, length: int, kind: str, times: dict[str, float], apart: float
) -> list[str]:
    maskwise_ms, sdpa = times["maskwise"], times["sdpa"]
    fastest = min(taken for name, taken in times.items() if name != "maskwise")
    eager = f"{times['eager']:.4g}" if "eager" in times else "-"
    ratios = [f"{sdpa / maskwise_ms:.2f}", f"{fastest / maskwise_ms:.2f}"]
    size = f"{model.batch} x {length}"
    return [
        model.name,
        size,
        kind,
        f"{sdpa:.4g}",
        eager,
        f"{maskwise_ms:.4g}",
        *ratios,
        f"{apart:.1e}",
    ]


def rows(only: str) -> Iterator[list[str]]:
    for model in MODELS:
        for kind in ("float32", "bfloat16") if only in model.name else ():
            instance = make(model, getattr(torch, kind))
            for length in model.lengths:
                yield row_of(model, length, kind, *measure(model, instance, length))


def main() -> int:
    only = begin_suite("transformers", __doc__, "models")
    transformers.utils.logging.set_verbosity_error()
    with torch.inference_mode():
        table = shown(HEAD, rows(only))
    if not only:
        versions = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"
        save_table(ROOT / "build/bench", "transformers", versions, HEAD, table)
    return 0 if table else 1


if __name__ == "__main__":
    sys.exit(main())
