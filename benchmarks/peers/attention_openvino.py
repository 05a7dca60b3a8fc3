"""OpenVINO: a model of one ScaledDotProductAttention with the mask given, and with causal."""

from collections.abc import Callable
from functools import partial
from typing import Any

import openvino as ov
from attention_operands import Attending, Form, Operands
from openvino import opset13 as ops
from peer_openvino import TYPES, bound


class Peer(Attending):
    version = ov.__version__.split("-")[0]

    def ways(self, of: Operands) -> dict[str, Callable[[], Form]]:
        if of.mask is None:
            return {"no mask": lambda: self.make(of, [], causal=False)}
        masks = [(of.mask, ov.Type.boolean)]
        forms = {"attention_mask": lambda: self.make(of, masks, causal=False)}
        if of.causal:
            forms["causal"] = lambda: self.make(of, [], causal=True)
        return forms

    def make(self, of: Operands, masks: list[Any], causal: bool) -> Form:
        kind, dst = TYPES[of.dtype], of.empty()
        inputs = [*((array, kind) for array in (of.q, of.k, of.v)), *masks]
        attention = partial(ops.scaled_dot_product_attention, causal=causal)
        hint = {"INFERENCE_PRECISION_HINT": kind}  # the plugin's own choice for f32 is bf16
        return bound(attention, inputs, dst, self.threads, **hint), lambda _: dst
