"""NumPy: where, and two copies into an array that is there already."""

from __future__ import annotations

from typing import Any

import numpy as np
from operands import Operands

BITS = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i64": np.int64,
    "bool": np.bool_,
}


class Peer:
    version = np.__version__
    threads = 1

    def __init__(self, threads: int) -> None:
        self.forms: dict[str, Any] = dict.fromkeys(("where", "copyto"))

    def load(self, case: dict[str, Any]) -> bool:
        of = Operands(case, BITS[case["dtype"]], np.empty)

        def where() -> Any:
            return np.where(of.cond, of.src_0, of.src_1)

        def copy() -> Any:
            np.copyto(of.dst, of.src_1)
            np.copyto(of.dst, of.src_0, where=of.cond)
            return of.dst

        self.forms = {"where": where, "copyto": copy}
        return all(of.is_expected(form()) for form in self.forms.values())
