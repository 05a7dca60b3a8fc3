"""Measures forward and backward attention with typical masks, and training steps of ModernBERT-base
with 6 layers. SDPA and Maskwise take turns in one process on torch's threads.

Started by scripts/bench gradients, which installs and builds everything.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import maskwise
import maskwise.transformers  # registers "maskwise"
import torch
import transformers
from table import begin_suite, save_table, shown
from token_models import MODELS, make
from torch.nn.functional import scaled_dot_product_attention
from worker import ROOT

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
from mask_engine import rules_of
from mask_problem import PROBLEMS, Problem

TURNS, SECONDS = 7, 60.0  # after SECONDS, only the first 3 turns start
NAMES = ("no mask", "causal", "local 128 (ModernBERT)", "packed documents")
KINDS = ("float32", "bfloat16")
TOKENS = (1024, 4096)
ALLOWED = {"float32": 1e-4, "bfloat16": 3e-2}  # upper bounds on distance()
HEAD = ["case", "shape", "type", "SDPA, ms", "Maskwise", "times as fast", "apart"]
Step = Callable[[], list[torch.Tensor]]


def steps_of(problem: Problem, kind: str) -> tuple[Step, Step]:
    """Returns two steps that compute the gradients of query, key and value: with SDPA in its
    fastest form, and with Maskwise's rules."""
    dtype = getattr(torch, kind)
    tensors = [torch.from_numpy(one).to(dtype).requires_grad_() for one in problem.operands()]
    seed = torch.from_numpy(problem.operands()[0]).to(dtype)
    options: dict[str, Any] = {"is_causal": True} if problem.is_causal else {}
    if problem.kept is not None and not problem.is_causal:
        options = {"attn_mask": torch.from_numpy(problem.kept.copy())}

    def step(attend: Any) -> list[torch.Tensor]:
        return list(torch.autograd.grad(attend(*tensors), tensors, seed))

    sdpa = partial(scaled_dot_product_attention, **options)
    maskwise_form = partial(maskwise.attention, attn_mask=rules_of(problem))
    return partial(step, sdpa), partial(step, maskwise_form)


def training_steps(module: Any, inputs: dict[str, Any]) -> tuple[Step, Step]:
    def step(name: str) -> list[torch.Tensor]:
        module.set_attn_implementation(name)
        module.zero_grad()
        module(**inputs)[0].square().mean().backward()
        return [one.grad for one in module.parameters() if one.grad is not None]

    return partial(step, "sdpa"), partial(step, "maskwise")


def distance(steps: tuple[Step, Step]) -> float:
    """Returns the largest difference between the gradients, relative to the largest gradient."""
    first, second = ([one.float().clone() for one in step()] for step in steps)
    most = max(one.abs().max().item() for one in first)
    apart = (one.sub(other).abs().max().item() for one, other in zip(first, second, strict=True))
    return max(apart) / most


def milliseconds(step: Step) -> float:
    begin = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - begin)


def row_of(name: str, shape: str, kind: str, steps: tuple[Step, Step]) -> list[str]:
    apart, taken = distance(steps), []
    begin = time.monotonic()
    while len(taken) < TURNS and (len(taken) < 3 or time.monotonic() - begin < SECONDS):
        taken.append([milliseconds(step) for step in steps])
    sdpa, maskwise_form = (statistics.median(times) for times in zip(*taken, strict=True))
    return [
        name,
        shape,
        kind,
        f"{sdpa:.4g}",
        f"{maskwise_form:.4g}",
        f"{sdpa / maskwise_form:.2f}",
        f"{apart:.1e}",
    ]


def rows(only: str) -> Iterator[list[str]]:
    for problem in PROBLEMS:
        for kind in KINDS if problem.name in NAMES and only in problem.name else ():
            shape = "x".join(map(str, problem.shape))
            yield row_of(problem.name, shape, kind, steps_of(problem, kind))
    model = MODELS[0]
    name = f"training step, {model.name}"
    for kind in KINDS if only in name else ():
        module = make(model, getattr(torch, kind)).train()
        for tokens in TOKENS:
            inputs = model.inputs(tokens, getattr(torch, kind))
            yield row_of(name, f"1 x {tokens} tokens", kind, training_steps(module, inputs))


def main() -> int:
    only = begin_suite("gradients", __doc__, "cases")
    transformers.utils.logging.set_verbosity_error()
    table = shown(HEAD, rows(only))
    versions = f"Maskwise {maskwise.__version__}, PyTorch {torch.__version__}"
    if not only:
        save_table(ROOT / "build/bench", "gradients", versions, HEAD, table)
    wrong = [row for row in table if float(row[-1]) > ALLOWED[row[2]]]
    print("\n".join(f"{row[0]} {row[2]}: gradients differ by {row[-1]}" for row in wrong))
    return 1 if wrong or not table else 0


if __name__ == "__main__":
    sys.exit(main())
