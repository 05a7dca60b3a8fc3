"""Runs maskwise.attention with rules, with the mask as an array, and with a prepared mask."""

import os
from collections.abc import Callable
from functools import partial, reduce
from operator import and_
from typing import Any

import mask_problem
import maskwise
import numpy as np
from attending import Form
from mask_problem import Problem
from maskwise import Mask


class Peer(mask_problem.Peer):
    version = maskwise.__version__

    def __init__(self, threads: int) -> None:
        self.threads = min(threads, len(os.sched_getaffinity(0)))

    def ways(self, problem: Problem) -> dict[str, Callable[[], Form]]:
        operands = problem.operands()
        if problem.dtype == "bf16":
            from ml_dtypes import bfloat16

            operands = [one.astype(bfloat16) for one in operands]
        out = np.empty_like(operands[0])
        attend = partial(maskwise.attention, *operands, enable_gqa=True, out=out)
        return forms(problem, attend, lambda answer: answer.astype(np.float32))


def rules_of(problem: Problem) -> Mask | None:
    parts = [getattr(Mask, name)(**numbers) for name, numbers in problem.rules.items()]
    return reduce(and_, parts) if parts else None


def forms(
    problem: Problem, attend: Any, read: Any, array: Any = lambda mask: mask
) -> dict[str, Callable[[], Form]]:
    """The forms by name. `read` converts a result to NumPy. `array` converts a NumPy mask to an
    argument of `attend`."""

    def form(make: Callable[[], Any]) -> Callable[[], Form]:
        return lambda: (partial(attend, make()), read)

    rules = {"rules": form(lambda: rules_of(problem))} if problem.rules else {}
    if problem.bias is not None:
        return {**rules, "array": form(lambda: array(problem.added))}
    if problem.kept is None:
        return {"no mask": form(lambda: None)}
    return {
        **rules,
        "array": form(lambda: array(problem.kept)),
        "prepared": form(lambda: Mask.dense(array(problem.kept))),
    }
