"""maskwise.attention: with rules, with the mask as an array, and with that prepared."""

import os
from collections.abc import Callable
from functools import partial, reduce
from operator import and_
from typing import Any

import maskwise
import ml_dtypes
import numpy as np
from mask_problem import Attending, Problem
from maskwise import Mask


class Peer(Attending):
    version = maskwise.__version__

    def __init__(self, threads: int) -> None:
        self.forms = {}
        self.threads = min(threads, len(os.sched_getaffinity(0)))

    def ways(self, of: Problem, dtype: str) -> dict[str, Callable[[], Callable[[], Any]]]:
        kind = np.dtype("f4") if dtype == "f32" else np.dtype(ml_dtypes.bfloat16)
        q, k, v = (one.astype(kind) for one in of.operands())
        out = np.empty_like(q)
        attend = partial(maskwise.attention, q, k, v, enable_gqa=True, out=out)
        if of.bias is not None:
            added = of.added
            return {"array": lambda: partial(attend, added)}
        if of.kept is None:
            return {"no mask": lambda: attend}
        parts = (getattr(Mask, name)(**given) for name, given in of.rules.items())
        rules = reduce(and_, parts)
        return {
            "rules": lambda: partial(attend, rules),
            "array": lambda: partial(attend, of.kept),
            "prepared": lambda: partial(attend, Mask.dense(of.kept)),
        }
