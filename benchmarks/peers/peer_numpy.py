"""NumPy: where, or two copies into an array that is there already, whichever is faster."""

from __future__ import annotations

import time
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
        self.call: Any = None

    def load(self, case: dict[str, Any]) -> bool:
        of = Operands(case, BITS[case["dtype"]])

        def where() -> Any:
            return np.where(of.cond, of.src_0, of.src_1)

        def copy() -> Any:
            np.copyto(of.dst, of.src_1)
            np.copyto(of.dst, of.src_0, where=of.cond)
            return of.dst

        spent = []
        for form in (where, copy):
            if not of.is_expected(form()):
                return False
            begin = time.perf_counter()
            form()
            spent.append(time.perf_counter() - begin)
        self.call = where if spent[0] <= spent[1] else copy
        return True
