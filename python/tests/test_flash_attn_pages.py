"""maskwise.flash_attn returns the same results with block tables and with contiguous caches."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from arrays import in_a_process
from torch_tensors import draw

try:
    import torch
    from maskwise import flash_attn
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no PyTorch: scripts/setup --torch")

INVALID = 2**31 - 1


class Paged:
    """A KV cache in blocks. Each sequence uses random blocks, which sequences may share. Unused
    blocks are NaN. Unused table entries are invalid."""

    def __init__(
        self, size: int, lengths: list[int], dtype: str = "float32", seed: int = 0
    ) -> None:
        random = torch.Generator().manual_seed(seed)
        self.lengths, most = torch.tensor(lengths), max(lengths)
        self.table = torch.randint(0, 20, (len(lengths), -(-most // size) + 1), generator=random)
        # k and v are views of one tensor, as in some servers' caches.
        cache = draw(22, 2, size, 2, 16, seed=seed + 1, dtype=getattr(torch, dtype))
        used = torch.arange(self.table.shape[1]) * size < self.lengths[:, None]
        kept = torch.zeros(22, dtype=torch.bool)
        kept[self.table[used]] = True
        cache[~kept] = torch.nan
        self.k, self.v = cache[:, 0], cache[:, 1]
        self.whole = [one[self.table].flatten(1, 2) for one in (self.k, self.v)]
        self.table[~used] = INVALID
        self.table = self.table.int()

    def packed(self) -> list[Any]:
        places = torch.arange(self.whole[0].shape[1]) < self.lengths[:, None]
        return [one[places] for one in self.whole]


OPTIONS: list[dict[str, Any]] = [
    {"causal": True},
    {"window_size": (7, 2), "softcap": 3.0},
    {"causal": True, "alibi_slopes": [0.5, 0.02, 0.0, 2.0]},
    {"s_aux": [0.1, 2.0, -1.0, 0.5]},
]


def with_tensors(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: torch.tensor(one) if isinstance(one, list) else one for name, one in options.items()
    }


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 3, 16, 64, 128, 256])
@pytest.mark.parametrize("rows", [1, 7, 40, 100])
def test_a_cache_in_blocks(rows: int, size: int, dtype: str) -> None:
    q = draw(4, rows, 4, 16, dtype=getattr(torch, dtype))
    case = Paged(size, [min(3 * size + 50, 11 * size), 1, 0, size], dtype)
    for options in map(with_tensors, OPTIONS):
        more: dict[str, Any] = {
            "cache_seqlens": case.lengths,
            "return_softmax_lse": True,
            **options,
        }
        wanted = flash_attn.flash_attn_with_kvcache(q, *case.whole, **more)
        got = flash_attn.flash_attn_with_kvcache(q, case.k, case.v, block_table=case.table, **more)
        for one, other in zip(got, wanted, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", [1, 3, 16, 64, 128])
def test_packed_rows_and_blocks(size: int, dtype: str) -> None:
    lengths, rows = [70, 0, 3, 1, 2 * size], [5, 2, 0, 1, 90]
    case = Paged(size, [min(one, 20 * size) for one in lengths], dtype)
    q = draw(sum(rows), 4, 16, dtype=getattr(torch, dtype))
    bounds = [
        torch.tensor([0, *itertools.accumulate(one)]).int() for one in (rows, case.lengths.tolist())
    ]
    for options in map(with_tensors, OPTIONS):
        more: dict[str, Any] = {"return_attn_probs": True, **options}
        wanted = flash_attn.flash_attn_varlen_func(q, *case.packed(), *bounds, **more)
        more["block_table"] = case.table
        got = flash_attn.flash_attn_varlen_func(q, case.k, case.v, *bounds, **more)
        assert got[0].shape == q.shape and got[2] is None
        error = 2e-6 if dtype == "float32" else 2e-2  # the two calls have different key tiles
        for one, other in zip(got[:2], wanted[:2], strict=True):
            torch.testing.assert_close(one, other, atol=error, rtol=error)


def test_gradients_reach_the_blocks() -> None:
    case, q = Paged(8, [17, 30]), draw(2, 3, 4, 16)
    bounds = torch.tensor([0, 3, 6]), torch.tensor([0, 17, 47])

    def results(q: Any, k: Any, v: Any) -> list[Any]:
        more: dict[str, Any] = {"causal": True, "block_table": case.table}
        return [
            flash_attn.flash_attn_with_kvcache(q, k, v, cache_seqlens=case.lengths, **more),
            flash_attn.flash_attn_varlen_func(q.flatten(0, 1), k, v, *bounds, **more),
        ]

    plain = results(q, case.k, case.v)
    operands = [one.clone().requires_grad_() for one in (q, case.k, case.v)]
    for one, wanted in zip(results(*operands), plain, strict=True):
        torch.testing.assert_close(one, wanted, atol=1e-6, rtol=1e-6)
        for gradient in torch.autograd.grad(one.sum(), operands):
            assert gradient.any()


def test_tables_of_any_layout() -> None:
    case, q = Paged(8, [17, 30]), draw(2, 1, 4, 16)
    more: dict[str, Any] = {"cache_seqlens": case.lengths}
    wanted = flash_attn.flash_attn_with_kvcache(q, *case.whole, **more)
    wide = torch.full((2, 2 * case.table.shape[1]), INVALID, dtype=torch.int32)
    wide[:, ::2] = case.table
    for table in (case.table.long(), wide[:, ::2], case.table.T.contiguous().T):
        got = flash_attn.flash_attn_with_kvcache(q, case.k, case.v, block_table=table, **more)
        assert torch.equal(got, wanted)
    case.table.resize_(100)  # raises if a call has fixed the storage's size, as .numpy() does


@pytest.mark.parametrize("packed", [False, True])
def test_tables_of_other_types_and_shapes_are_refused(packed: bool) -> None:
    case, q = Paged(8, [17, 30]), draw(2, 1, 4, 16)

    def attend(table: torch.Tensor) -> Any:
        if packed:
            bounds = torch.tensor([0, 1, 2]), torch.tensor([0, 17, 47])
            options = {"max_seqlen_q": 1, "max_seqlen_k": 30, "block_table": table}
            return flash_attn.flash_attn_varlen_func(q[:, 0], case.k, case.v, *bounds, **options)
        options = {"cache_seqlens": case.lengths, "block_table": table}
        return flash_attn.flash_attn_with_kvcache(q, case.k, case.v, **options)

    for dtype in (torch.float32, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match=f"elements of {dtype}, expected integers"):
            attend(case.table.to(dtype))
    for table in (case.table[0], case.table[0, 0], case.table[None]):
        with pytest.raises(ValueError, match=r"expected \(sequences, blocks\)"):
            attend(table)
    with pytest.raises(ValueError, match="1 rows for 2 sequences"):
        attend(case.table[:1])


def test_no_sequences_and_no_keys() -> None:
    k = draw(3, 4, 2, 16)
    for batch, table in ((0, torch.zeros(0, 5).int()), (2, torch.full((2, 1), INVALID).int())):
        q = draw(batch, 1, 4, 16)
        got = flash_attn.flash_attn_with_kvcache(q, k, k, cache_seqlens=0, block_table=table)
        assert got.shape == q.shape and not got.any()
    bounds = torch.tensor([0, 2]), torch.tensor([0, 0])
    got = flash_attn.flash_attn_varlen_func(
        draw(2, 4, 16), k, k, *bounds, block_table=torch.full((1, 1), INVALID)
    )
    assert not got.any()


MEMORY = """
import conftest, torch
from maskwise import flash_attn

blocks, size = 4096, 16
k, v = (torch.ones(blocks, size, 8, 64) for _ in range(2))
table = torch.arange(blocks).reshape(8, blocks // 8).int()

def most_kilobytes(lengths):
    more = {"cache_seqlens": torch.tensor([lengths] * 8), "block_table": table}
    flash_attn.flash_attn_with_kvcache(torch.ones(8, 1, 8, 64), k, v, **more)
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])

before = most_kilobytes(1)
print(most_kilobytes(8192) - before)
"""


def test_memory_does_not_grow_with_the_cache() -> None:
    """The keys and values together have 268 MB."""
    process = in_a_process(MEMORY)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 20_000


def test_deterministic_algorithms_accept_block_tables() -> None:
    paged = Paged(16, [40, 70])
    q = draw(2, 1, 4, 16)
    torch.use_deterministic_algorithms(True)
    try:
        run = flash_attn.flash_attn_with_kvcache
        result = run(q, paged.k, paged.v, cache_seqlens=paged.lengths, block_table=paged.table)
        for i, length in enumerate(paged.lengths.tolist()):
            k, v = (one[i : i + 1, :length] for one in paged.whole)
            assert torch.equal(flash_attn.flash_attn_func(q[i : i + 1], k, v), result[i : i + 1])
    finally:
        torch.use_deterministic_algorithms(False)
