"""Runs numexpr's where(cond, src_0, src_1), which writes an existing array."""

from typing import Any

import numexpr
import numpy as np
from operands import Operands, Refused, Selecting


class Peer(Selecting):
    version = numexpr.__version__

    def __init__(self, threads: int) -> None:
        numexpr.set_num_threads(threads)
        self.threads = threads

    def ready(self, case: dict[str, Any]) -> tuple[Operands, dict[str, Any]]:
        if case["dtype"] != "f32":
            raise Refused(f"has no {case['dtype']}")
        operands = Operands(case, np.empty)
        values = {"cond": operands.cond, "src_0": operands.src_0, "src_1": operands.src_1}
        numexpr.evaluate("where(cond, src_0, src_1)", local_dict=values, out=operands.dst)
        # Unlike evaluate, re_evaluate does not parse the expression again.
        return operands, {"": lambda: numexpr.re_evaluate(local_dict=values)}
