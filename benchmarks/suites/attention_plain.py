"""Masked attention that every implementation has an operator or a graph for: the cases that they
are compared on."""

import re
from dataclasses import dataclass
from pathlib import Path

HEAD = 64
SCALE = 0.125
# The operands' ids in the graph (attention_graphs.plain), which their files are called by.
FILES = {"q": "0", "k": "1", "v": "2", "scale": "3", "fill": "4", "mask": "5"}
RESULT = 6
ANSWER = f"{RESULT}.out"
# A mask that leaves this percentage of tiles, drawn at random.
KEPT = "kept "
PERCENTS = (5, 10, 25, 50, 75, 100)


@dataclass(frozen=True)
class Plain:
    """Attention over q, k, v of 1 x heads x length x HEAD."""

    kind: str
    heads: int
    length: int
    dtype: str

    @property
    def name(self) -> str:
        return f"plain {self.kind} 1x{self.heads}x{self.length} {self.dtype}"

    @property
    def shape(self) -> list[int]:
        return [1, self.heads, self.length, HEAD]

    @property
    def mask_shape(self) -> list[int] | None:
        """None where every key is kept."""
        rows = {"no mask": None, "padding": 1}.get(self.kind, self.length)
        return [1, 1, rows, self.length] if rows else None


def cases() -> list[Plain]:
    wanted = [
        ("causal", 16, 384),
        ("causal", 12, 512),
        ("causal", 12, 1024),
        ("causal", 12, 2048),
        ("causal", 12, 4096),
        ("padding", 12, 128),
        ("padding", 12, 1024),
        ("causal and padding", 12, 1024),
        ("block-sparse", 12, 1024),
        ("block-sparse", 12, 2048),
        ("no mask", 12, 1024),
    ]
    dtypes = ["f32", "bf16"] if has_bf16(Path("/proc/cpuinfo").read_text()) else ["f32"]
    kept = [Plain(f"{KEPT}{percent} %", 12, 2048, "f32") for percent in PERCENTS]
    return [Plain(*case, dtype) for dtype in dtypes for case in wanted] + kept


def has_bf16(cpuinfo: str) -> bool:
    return re.search(r"\b(avx512_bf16|amx_bf16)\b", cpuinfo) is not None
