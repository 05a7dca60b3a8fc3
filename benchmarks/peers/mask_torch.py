"""Runs PyTorch's scaled_dot_product_attention, and FlexAttention compiled with a block mask."""

from collections.abc import Callable
from functools import partial
from typing import Any

import mask_problem
import torch
from attending import Form
from mask_problem import Problem
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention


class Peer(mask_problem.Peer):
    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.threads = torch.get_num_threads()

    def ways(self, problem: Problem) -> dict[str, Callable[[], Form]]:
        kind = torch.float32 if problem.dtype == "f32" else torch.bfloat16
        operands = [torch.from_numpy(one).to(kind) for one in problem.operands()]
        attend = partial(scaled_dot_product_attention, *operands, enable_gqa=True)
        mask = problem.kept if problem.bias is None else problem.added
        forms = {"SDPA": lambda: (partial(attend, attn_mask=tensor(mask, kind)), read)}
        if problem.is_causal:
            forms["SDPA is_causal"] = lambda: (partial(attend, is_causal=True), read)
        forms["FlexAttention"] = lambda: (flex(problem, operands), read)
        return forms


def read(answer: Any) -> Any:
    return answer.float().contiguous().numpy()


def tensor(mask: Any, kind: Any) -> Any:
    if mask is None:
        return None
    tensor = torch.from_numpy(mask)
    return tensor if tensor.dtype == torch.bool else tensor.to(kind)


def flex(problem: Problem, operands: list[Any]) -> Callable[[], Any]:
    """Compiles for this problem in a fresh state, because torch stops compiling after eight
    problems."""
    torch._dynamo.reset()
    rows, keys = problem.shape[2], problem.key_shape[2]
    block_mask, score_mod = None, None
    if problem.keeps is not None:
        keeps = problem.keeps(torch.as_tensor)
        has_sequences = problem.kept.shape[0] > 1
        block_mask = create_block_mask(
            lambda b, h, q, kv: keeps(b, q, kv),
            problem.shape[0] if has_sequences else None,
            None,
            rows,
            keys,
            device="cpu",
        )
    if problem.bias is not None:
        added = torch.from_numpy(problem.added)
        heads = added.shape[1] > 1

        def score_mod(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
            return score + added[0, h if heads else 0, q, kv]

    compiled = torch.compile(flex_attention, dynamic=False)
    call = partial(compiled, *operands, score_mod=score_mod, block_mask=block_mask, enable_gqa=True)
    call()
    return call
