"""A case's data as NumPy arrays. Every peer gets the same bytes."""

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "bool": np.bool_}


class Refused(Exception):
    """Raised if the peer does not support a case."""


def private(count: int, dtype: Any) -> Any:
    """An array in new private pages, like the buffers of the C++ programs."""
    bytes_needed = max(count, 1) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, bytes_needed), dtype=dtype)[:count]


def span(operand: dict[str, Any]) -> int:
    pairs = zip(operand["dims"], operand["strides"], strict=True)
    return 1 + sum(int((extent - 1) * stride) for extent, stride in pairs)


class Operands:
    """cond, src_0 and src_1 with the case's data, and dst. `room` allocates every array:
    np.empty, which requests huge pages for large arrays, for peers that take NumPy arrays."""

    def __init__(self, case: dict[str, Any], room: Callable[[int, Any], Any] = private) -> None:
        self.case = case
        self.room = room
        self.folder = Path(case["folder"])
        value_type = TYPES[case["dtype"]]
        self.cond = self.read("cond", np.bool_)
        self.src_0 = self.read("src_0", value_type)
        self.src_1 = self.read("src_1", value_type)
        self.dst = self.view(room(span(case["dst"]), value_type), case["dst"])

    def read(self, name: str, dtype: Any) -> Any:
        operand = self.case[name]
        data = self.room(span(operand), dtype)
        data[:] = np.fromfile(self.folder / name, dtype=dtype, count=data.size)
        return self.view(data, operand)

    @staticmethod
    def view(data: Any, operand: dict[str, Any]) -> Any:
        # A dimension with stride 0 gets extent 1, because every peer broadcasts.
        dims = [
            extent if stride else 1
            for extent, stride in zip(operand["dims"], operand["strides"], strict=True)
        ]
        strides = [stride * data.itemsize for stride in operand["strides"]]
        return np.lib.stride_tricks.as_strided(data, dims, strides)

    def require_dense(self) -> None:
        for array in (self.cond, self.src_0, self.src_1, self.dst):
            if not array.flags.c_contiguous:
                raise Refused("takes dense operands only")

    def is_expected(self, answer: Any) -> bool:
        bits, dst = f"u{self.dst.itemsize}", self.case["dst"]
        data = np.fromfile(self.folder / "expected", dtype=bits, count=span(dst))
        expected = self.view(data, dst)
        return answer.shape == expected.shape and bool(np.array_equal(answer.view(bits), expected))


class Selecting:
    """A library that runs Select. `ready` returns a case's operands, and functions that run the
    case. Each function returns its result as an array, or writes dst."""

    forms: dict[str, Any] = {"": None}  # noqa: RUF012  # each case replaces them

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def ready(self, case: dict[str, Any]) -> tuple[Operands, dict[str, Callable[[], Any]]]:
        raise NotImplementedError

    def load(self, case: dict[str, Any]) -> dict[str, str]:
        try:
            self.operands, self.forms = self.ready(case)  # the attribute keeps the arrays alive
        except Refused as reason:
            return {"state": "refused", "reason": str(reason)}
        answers = [form() for form in self.forms.values()]
        right = [
            self.operands.is_expected(a if isinstance(a, np.ndarray) else self.operands.dst)
            for a in answers
        ]
        return {"state": "right" if all(right) else "wrong"}
