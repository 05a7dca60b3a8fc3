"""Maskwise's own engine, without oneDNN: maskwise.attention, as PyTorch's function is called."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import maskwise
import ml_dtypes
from attention_operands import Attending, Form, Operands

TYPES = {"f32": "float32", "bf16": ml_dtypes.bfloat16}


class Peer(Attending):
    version = maskwise.__version__

    def __init__(self, threads: int) -> None:
        self.threads = min(threads, len(os.sched_getaffinity(0)))

    def ways(self, of: Operands) -> dict[str, Callable[[], Form]]:
        dst = of.empty()
        q, k, v, out = (array.view(TYPES[of.dtype]) for array in (of.q, of.k, of.v, dst))
        attend = partial(maskwise.attention, q, k, v, scale=of.scale, out=out)

        def form(**mask: Any) -> Callable[[], Form]:
            return lambda: (partial(attend, **mask), lambda _: dst)

        if of.mask is None:
            return {"no mask": form()}
        forms = {"mask": form(attn_mask=of.mask)}
        if of.causal:
            forms["is_causal"] = form(is_causal=True)
        return forms
