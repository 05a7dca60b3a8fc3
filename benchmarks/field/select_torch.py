"""Select by Maskwise and by torch, in turns, in one process."""

from collections.abc import Iterator

import maskwise
import torch
from table import keep, shown, time_text, times_text
from turns import FOLDER, in_turns, medians

HEAD = ["case", "torch.where", "with `out=`", "`maskwise.where`", "with `out=`", "times faster"]


def rows() -> Iterator[list[str]]:
    torch.manual_seed(1)
    x, y = torch.randn(2, 16, 16, 256, 256)
    out = torch.empty_like(x)
    for name, mask, other in (
        ("16x16x256x256, all the same shape", torch.rand(16, 16, 256, 256) < 0.5, y),
        ("mask 256x256 onto 16x16x256x256", torch.rand(256, 256) < 0.5, y),
        ("mask 256x256, a scalar", torch.rand(256, 256) < 0.5, torch.tensor(0.0)),
    ):
        if not torch.equal(maskwise.where(mask, x, other), torch.where(mask, x, other)):
            raise SystemExit(f"{name}: the answers differ")
        forms = [
            lambda mask=mask, other=other: torch.where(mask, x, other),
            lambda mask=mask, other=other: torch.where(mask, x, other, out=out),
            lambda mask=mask, other=other: maskwise.where(mask, x, other),
            lambda mask=mask, other=other: maskwise.where(mask, x, other, out=out),
        ]
        taken = medians(in_turns(forms))
        yield [name, *map(time_text, taken), times_text(taken[1], taken[3])]


if __name__ == "__main__":
    table = shown(HEAD, rows())
    keep(FOLDER, "select_torch", f"PyTorch {torch.__version__}", HEAD, table)
