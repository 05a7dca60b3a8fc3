"""Paged keys and values: flash_attn's block_table.

Blocks have shape (blocks, block size, heads, depth). The table has shape (sequences, blocks per
sequence).
"""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

from typing import Any

import torch

from maskwise import Mask
from maskwise._attention import packed_mask
from maskwise._call import AttentionCall
from maskwise._torch_tensors import as_array, indices, is_followed


def keys_of(blocks: torch.Tensor, table: torch.Tensor) -> int:
    """Checks the table. Returns its capacity in keys per sequence."""
    if table.ndim != 2 or blocks.shape[1] == 0:
        shapes = f"{tuple(table.shape)} for blocks of {blocks.shape[1]} keys"
        raise ValueError(f"block_table has shape {shapes}, expected (sequences, blocks)")
    if table.dtype == torch.bool or table.is_floating_point() or table.is_complex():
        raise TypeError(f"block_table has elements of {table.dtype}, expected integers")
    return table.shape[1] * blocks.shape[1]


def require_blocks(blocks: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor) -> None:
    """Checks that every key of every sequence has a block."""
    most = keys_of(blocks, table)
    if table.shape[0] != len(lengths):
        raise ValueError(f"block_table has {table.shape[0]} rows for {len(lengths)} sequences")
    if (lengths > most).any():
        raise ValueError(f"sequences have {lengths.tolist()} keys, block_table has room for {most}")
    is_used = indices(table.shape[1]) * blocks.shape[1] < lengths[:, None]
    if (is_used & ((table < 0) | (table >= blocks.shape[0]))).any():
        raise ValueError(f"block_table names a block outside 0 to {blocks.shape[0] - 1}")


def with_blocks(call: AttentionCall, table: torch.Tensor, lengths: torch.Tensor) -> AttentionCall:
    """Makes `table` the call's page table, or copies the blocks if torch tracks the call."""
    size = call.key.shape[1]
    most = int(lengths.max()) if lengths.numel() else 0
    table = table[:, : -(-most // size)]
    if not is_followed(call):
        return call.changed(page_table=as_array(table.int()))
    key, value = (_unpaged(one, table) for one in (call.key, call.value))
    return call.changed(key=key, value=value)


def _unpaged(blocks: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Gathers each sequence's blocks as (sequences, keys, heads, depth)."""
    used = table.long().clamp(0, max(blocks.shape[0] - 1, 0))
    keys = table.shape[1] * blocks.shape[1]
    return blocks[used].reshape(table.shape[0], keys, *blocks.shape[2:])


def packed_with_blocks(
    call: AttentionCall,
    table: torch.Tensor,
    cu_seqlens_q: Any,
    cu_seqlens_k: torch.Tensor,
    is_causal: bool,
) -> AttentionCall:
    """Converts packed rows to one sequence of documents. Each document's keys begin at a
    block's start."""
    size, counts = call.key.shape[1], cu_seqlens_k.diff()
    mask = packed_mask(cu_seqlens_q, cu_seqlens_k, len(call.query), int(counts.sum()))
    blocks = -(-counts // size)
    ends = blocks.cumsum(0)
    first_keys = ((ends - blocks) * size).tolist()
    documents = tuple(
        (first_row, rows, first_key, keys)
        for (first_row, rows, _, keys), first_key in zip(
            mask._rules.documents[0], first_keys, strict=True
        )
    )
    rules: dict[str, Any] = {"from_end": True, "in_documents": True, "causal": is_causal}
    mask = Mask._from_rules(documents=(documents,), **rules)
    table = table[indices(table.shape[1]) < blocks[:, None]][None]
    call = call.changed(query=call.query[None], attn_mask=mask)
    return with_blocks(call, table, blocks.sum()[None] * size)
