"""ONNX Runtime: the contrib operator MultiHeadAttention, ONNX's Attention, and the graph of single
operators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
from attention_operands import BITS, Attending, Form, Operands
from onnx import TensorProto, helper
from peer_onnxruntime import TYPES, Inputs, bound, options

OPSET = 23
MINUS_INFINITY = {"f32": -np.inf, "bf16": 0xFF80}  # as the bits hold it


def hidden(array: Any) -> Any:
    """batch x sequence x heads * head, as MultiHeadAttention takes it."""
    return np.ascontiguousarray(array.swapaxes(1, 2)).reshape(1, array.shape[2], -1)


def full(mask: Any) -> Any:
    """With a row for each query: these operators take no other."""
    columns = mask.shape[-1]
    return np.ascontiguousarray(np.broadcast_to(mask, (1, 1, columns, columns)))


def single_operators(of: Operands) -> list[Any]:
    def constant(name: str, value: float) -> Any:
        return helper.make_node(
            "Constant", [], [name], value=helper.make_tensor(name, TYPES[of.dtype], [], [value])
        )

    nodes = [
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["scores"]),
        constant("scale", of.scale),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
    ]
    if of.mask is not None:
        nodes += [
            constant("fill", -np.inf),
            helper.make_node("Where", ["mask", "scaled", "fill"], ["kept"]),
        ]
    return [
        *nodes,
        helper.make_node("Softmax", [nodes[-1].output[0]], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["dst"]),
    ]


class Peer(Attending):
    version = ort.__version__

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.options = options(threads)

    def ways(self, of: Operands) -> dict[str, Callable[[], Form]]:
        forms: dict[str, Callable[[], Form]] = {
            "MultiHeadAttention": lambda: self.contrib(of, by_mask=of.mask is not None),
            "Attention": lambda: self.attention(of),
            "single operators": lambda: self.make(of, self.inputs(of), single_operators(of)),
        }
        if of.causal:
            forms["MultiHeadAttention unidirectional"] = lambda: self.contrib(of, by_mask=False)
        return forms

    @staticmethod
    def inputs(of: Operands) -> Inputs:
        kind = TYPES[of.dtype]
        inputs: Inputs = {"q": (of.q, kind), "k": (of.k, kind), "v": (of.v, kind)}
        return inputs if of.mask is None else {**inputs, "mask": (of.mask, TensorProto.BOOL)}

    def contrib(self, of: Operands, by_mask: bool) -> Form:
        """It adds a mask instead of selecting by it."""
        kind, (batch, heads, rows, head) = TYPES[of.dtype], of.shape
        inputs: Inputs = {"q": (hidden(of.q), kind), "k": (hidden(of.k), kind)}
        inputs["v"] = (hidden(of.v), kind)
        names = ["q", "k", "v"]
        if by_mask:
            bias = np.where(of.mask, 0, MINUS_INFINITY[of.dtype]).astype(BITS[of.dtype])
            inputs["bias"] = (full(bias), kind)
            names += ["", "", "bias"]
        node = helper.make_node(
            "MultiHeadAttention",
            names,
            ["dst"],
            domain="com.microsoft",
            num_heads=heads,
            scale=of.scale,
            unidirectional=int(of.causal and not by_mask),
        )
        call, read = self.make(of, inputs, [node], (batch, rows, heads * head))
        return call, lambda answer: np.ascontiguousarray(
            read(answer).reshape(batch, rows, heads, head).swapaxes(1, 2)
        )

    def attention(self, of: Operands) -> Form:
        inputs = self.inputs(of)
        if of.causal:
            del inputs["mask"]
        elif of.mask is not None:
            inputs["mask"] = (full(of.mask), TensorProto.BOOL)
        node = helper.make_node(
            "Attention", list(inputs), ["dst"], scale=of.scale, is_causal=int(of.causal)
        )
        return self.make(of, inputs, [node])

    def make(
        self, of: Operands, inputs: Inputs, nodes: list[Any], shape: tuple[int, ...] = ()
    ) -> Form:
        """`shape`: the answer's, where it is not that of q."""
        dst = np.empty(shape or of.shape, BITS[of.dtype])
        call = bound(nodes, inputs, dst, TYPES[of.dtype], OPSET, self.options)
        return call, lambda _: dst
