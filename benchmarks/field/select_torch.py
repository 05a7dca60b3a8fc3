"""Measures torch.where and masked_fill. torch's kernels and Maskwise's kernels take turns."""

from collections.abc import Callable, Iterator
from typing import Any

import maskwise.torch
import torch
from maskwise import _core
from table import save_table, shown, time_text
from turns import FOLDER, in_turns, medians, ratio_of

HEAD = ["16x16x256x256, f32", "torch", "with Maskwise", "times faster"]
NEVER = 2**62  # a minimum element count that no call reaches, so torch's kernels run every call


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    torch.manual_seed(1)
    x, y = torch.randn(2, 16, 16, 256, 256)
    out, filled = torch.empty_like(x), x.clone()
    whole = torch.rand(16, 16, 256, 256) < 0.5
    masks = {
        "16x16x256x256": whole,
        "256x256": whole[0, 0].clone(),
        "16x1x1x256": whole[:, :1, :1].clone(),
    }
    for name, mask in masks.items():
        yield f"where, mask {name}", lambda mask=mask: torch.where(mask, x, y)
        yield f"where, mask {name}, `out=`", lambda mask=mask: torch.where(mask, x, y, out=out)
        yield f"masked_fill, mask {name}", lambda mask=mask: x.masked_fill(mask, -1.0)
        yield f"masked_fill_, mask {name}", lambda mask=mask: filled.masked_fill_(mask, -1.0)


def rows() -> Iterator[list[str]]:
    for name, call in calls():

        def bounded(least_elements: int, call: Callable[[], Any] = call) -> Any:
            _core.bound_torch_selects(least_elements)
            return call()

        wanted = bounded(NEVER).clone()
        if not torch.equal(bounded(0), wanted):
            raise SystemExit(f"{name}: the answers differ")
        turns = in_turns([lambda run=bounded: run(NEVER), lambda run=bounded: run(0)])
        yield [name, *map(time_text, medians(turns)), f"{ratio_of(turns):.2f}"]


if __name__ == "__main__":
    with maskwise.torch.installed():
        table = shown(HEAD, rows())
    save_table(FOLDER, "select_torch", f"PyTorch {torch.__version__}", HEAD, table)
