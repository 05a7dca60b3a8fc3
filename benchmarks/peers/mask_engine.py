"""maskwise.attention: with rules, with the mask as an array, and with that prepared."""

import os
from collections.abc import Callable
from functools import partial, reduce
from operator import and_
from typing import Any

import mask_problem
import maskwise
import ml_dtypes
import numpy as np
from attention_operands import Form
from mask_problem import Problem
from maskwise import Mask


class Peer(mask_problem.Peer):
    version = maskwise.__version__

    def __init__(self, threads: int) -> None:
        self.threads = min(threads, len(os.sched_getaffinity(0)))

    def ways(self, of: Problem) -> dict[str, Callable[[], Form]]:
        kind = np.dtype("f4") if of.dtype == "f32" else np.dtype(ml_dtypes.bfloat16)
        q, k, v = (one.astype(kind) for one in of.operands())
        out = np.empty_like(q)
        attend = partial(maskwise.attention, q, k, v, enable_gqa=True, out=out)

        def form(make: Callable[[], Any]) -> Callable[[], Form]:
            return lambda: (partial(attend, make()), lambda answer: answer.astype(np.float32))

        if of.bias is not None:
            return {"array": form(lambda: of.added)}
        if of.kept is None:
            return {"no mask": form(lambda: None)}
        parts = [getattr(Mask, name)(**given) for name, given in of.rules.items()]
        return {
            "rules": form(lambda: reduce(and_, parts)),
            "array": form(lambda: of.kept),
            "prepared": form(lambda: Mask.dense(of.kept)),
        }
