"""PyTorch: scaled_dot_product_attention with the mask given, and with is_causal."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from attention_operands import Attending, Form, Operands
from torch.nn.functional import scaled_dot_product_attention


def tensor(array: Any) -> Any:
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if tensor.dtype == torch.uint16 else tensor


def read(answer: Any) -> Any:
    bits = answer.contiguous()
    return (bits.view(torch.uint16) if bits.dtype == torch.bfloat16 else bits).numpy()


class Peer(Attending):
    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.threads = torch.get_num_threads()

    def ways(self, of: Operands) -> dict[str, Callable[[], Form]]:
        attend = partial(scaled_dot_product_attention, *map(tensor, (of.q, of.k, of.v)))
        if of.mask is None:
            return {"no mask": lambda: (attend, read)}
        masked = partial(attend, attn_mask=tensor(of.mask))
        forms: dict[str, Callable[[], Form]] = {"attn_mask": lambda: (masked, read)}
        if of.causal:
            forms["is_causal"] = lambda: (partial(attend, is_causal=True), read)
        return forms
