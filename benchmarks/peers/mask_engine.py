"""maskwise.attention: with rules, with the mask as an array, and with a prepared mask."""

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

    def ways(self, of: Problem) -> dict[str, Callable[[], Form]]:
        operands = of.operands()
        if of.dtype == "bf16":
            from ml_dtypes import bfloat16

            operands = [one.astype(bfloat16) for one in operands]
        out = np.empty_like(operands[0])
        attend = partial(maskwise.attention, *operands, enable_gqa=True, out=out)
        return forms(of, attend, lambda answer: answer.astype(np.float32))


def rules_of(of: Problem) -> Mask | None:
    parts = [getattr(Mask, name)(**numbers) for name, numbers in of.rules.items()]
    return reduce(and_, parts) if parts else None


def forms(
    of: Problem, attend: Any, read: Any, array: Any = lambda mask: mask
) -> dict[str, Callable[[], Form]]:
    """`array` converts a NumPy array to an argument of `attend`."""

    def form(make: Callable[[], Any]) -> Callable[[], Form]:
        return lambda: (partial(attend, make()), read)

    rules = {"rules": form(lambda: rules_of(of))} if of.rules else {}
    if of.bias is not None:
        return {**rules, "array": form(lambda: array(of.added))}
    if of.kept is None:
        return {"no mask": form(lambda: None)}
    return {
        **rules,
        "array": form(lambda: array(of.kept)),
        "prepared": form(lambda: Mask.dense(array(of.kept))),
    }
