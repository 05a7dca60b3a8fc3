"""The operands of an attention case, as scripts/bench attention writes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

REASON = 200  # characters of what a library says
BITS = {"f32": np.float32, "bf16": np.uint16}

# Runs attention once; its answer, of the shape and in the order of q.
Form = tuple[Callable[[], Any], Callable[[Any], Any]]


class Operands:
    """q, k, v: batch x heads x sequence x head; mask: true where a key is kept, or None."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.shape: list[int] = case["shape"]
        self.dtype: str = case["dtype"]
        self.causal: bool = case["causal"]  # the mask says that and nothing else
        self.scale: float = case["scale"]
        folder, bits = Path(case["folder"]), BITS[self.dtype]
        self.q, self.k, self.v = (
            np.fromfile(folder / case["files"][name], dtype=bits).reshape(self.shape)
            for name in ("q", "k", "v")
        )
        self.mask: Any = None
        if case["mask"]:
            self.mask = np.fromfile(folder / case["files"]["mask"], np.bool_).reshape(case["mask"])

    def empty(self) -> Any:
        return np.empty(self.shape, BITS[self.dtype])


class Attending:
    """A peer of attention. `ways` gives those that it has for a case, each as a function that gets
    it ready; `load` runs each once and writes its answer into the case's folder."""

    forms: dict[str, Callable[[], Any]] = {}  # noqa: RUF012  # each case replaces them

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def ways(self, of: Any) -> dict[str, Callable[[], Form]]:
        raise NotImplementedError

    def problem(self, case: dict[str, Any]) -> Any:
        return Operands(case)

    def load(self, case: dict[str, Any]) -> dict[str, Any]:
        self.forms, answers, refused = {}, {}, {}
        self.of = self.problem(case)  # libraries have addresses only
        for form, make_ready in self.ways(self.of).items():
            try:
                call, read = make_ready()
                answer = read(call())
            except Exception as error:  # a peer's own, of any class
                refused[form] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:REASON]
                continue
            answers[form] = f"{type(self).__module__}-{len(answers)}"
            answer.tofile(Path(case["folder"]) / answers[form])
            self.forms[form] = call
        return {"answers": answers, "refused": refused}
