"""numexpr: where(cond, src_0, src_1) into an array that is there already."""

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
        of = Operands(case, np.empty)
        values = {"cond": of.cond, "src_0": of.src_0, "src_1": of.src_1}
        numexpr.evaluate("where(cond, src_0, src_1)", local_dict=values, out=of.dst)
        # Parsed once; later calls go straight to the loop.
        return of, {"": lambda: numexpr.re_evaluate(local_dict=values)}
