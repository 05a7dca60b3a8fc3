"""Tests which calls of where() Maskwise runs, and which calls NumPy runs."""

from __future__ import annotations

import enum
import pickle
import sys
import threading
from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import assert_same_bits, run_python

c = np.array([True, False, True])
f = np.arange(3, dtype="f")
NUMPYS = {
    "object": np.array([1, "a", None], object),
    "text": np.array(["a", "bc", "d"]),
    "bytes": np.array([b"a", b"bc", b"d"]),
    "variable text": np.array(["a", "bc", "d"], np.dtypes.StringDType()),
    "structure": np.zeros(3, [("a", "i4"), ("b", "f4")]),
    "longdouble": np.arange(3, dtype="g"),
    "complex longdouble": np.arange(3, dtype="G"),
    "byte-swapped": np.arange(3, dtype=">f4"),
}


@pytest.mark.parametrize("name", NUMPYS)
def test_dtypes_that_go_to_numpy(name: str) -> None:
    x = NUMPYS[name]
    y = x[::-1].copy()
    assert maskwise.explain(c, x, y).startswith(
        "numpy.where: Maskwise does not support the dtype of x"
    )
    expected, got = np.where(c, x, y), maskwise.where(c, x, y)
    assert got.dtype == expected.dtype
    assert got.tolist() == expected.tolist()
    out = np.empty_like(expected)
    assert maskwise.where(c, x, y, out=out) is out
    assert out.tolist() == expected.tolist()


def test_maskwise_runs_all_other_dtypes() -> None:
    for kind in np.typecodes["All"]:
        if kind not in "OSUVgGmM":
            x = np.zeros(3, kind)
            assert maskwise.explain(c, x, x).startswith("maskwise: ")
    for kind in ("M8[s]", "m8[s]"):
        x = np.zeros(3, kind)
        assert maskwise.explain(c, x, x).startswith("maskwise: ")


# A program that forbids ml_dtypes and uses a dtype of another library.
FORBID_ML_DTYPES = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np
import maskwise
from numpy._core._rational_tests import rational

x = np.arange(3).astype(rational)
assert maskwise.where([True, False, True], x, x[::-1]).tolist() == [0, 1, 2]
assert "Maskwise does not support the dtype of x" in maskwise.explain(x != 9, x, x)
"""


def test_a_dtype_of_another_library_without_ml_dtypes() -> None:
    assert run_python("-c", FORBID_ML_DTYPES).returncode == 0


def test_numpy_runs_calls_with_one_argument() -> None:
    for got, expected in zip(maskwise.where(c), np.where(c), strict=True):
        assert_same_bits(got, expected)


def test_explain() -> None:
    assert "select_x32" in maskwise.explain(c, f, 0.0)
    assert maskwise.instruction_set() in maskwise.explain(c, f, 0.0)
    large = np.zeros(20_000)
    assert "cast piece by piece" in maskwise.explain(c[0], large, large.astype("f"))
    assert "converted to booleans piece by piece" in maskwise.explain(large, large, large)
    for operands in ((c, f, f.astype("d")), (f, f, f), (large == 0, large, np.float32(1))):
        assert "small operands of other dtypes are cast" in maskwise.explain(*operands)
    assert "the condition's dtype" in maskwise.explain(c.astype(object), f, f)
    assert "the dtype of y" in maskwise.explain(c, f, "a")
    assert "select_x64" in maskwise.explain([True], [1], [2])
    with pytest.raises(ValueError, match="could not be broadcast"):
        maskwise.explain(c, f, f[:2])


def test_array_likes() -> None:
    assert_same_bits(maskwise.where([1, 0], [1, 2], (3.5, 4)), np.where([1, 0], [1, 2], (3.5, 4)))
    assert_same_bits(maskwise.where(range(3), f, f + 1), np.where(range(3), f, f + 1))
    with pytest.raises(ValueError, match="inhomogeneous"):
        maskwise.where(c, [[1], [1, 2]], f)


class Level(enum.IntEnum):
    HIGH = 3


def test_numbers_of_derived_types() -> None:
    x = np.arange(3, dtype="i1")
    assert_same_bits(maskwise.where(c, x, Level.HIGH), np.where(c, x, Level.HIGH))


def test_subclasses_give_plain_arrays() -> None:
    masked = np.ma.masked_array(f, [True, False, False])
    for array in (masked, f.view(np.recarray), np.asmatrix(f)):
        assert_same_bits(maskwise.where(c, array, 0), np.where(c, array, 0))


class Overriding:
    """An array of a library that has its own where."""

    def __array_function__(self, function: Any, *_: object) -> str:
        return function.__name__


def test_array_function_is_called() -> None:
    assert maskwise.where(c, Overriding(), f) == "where"
    assert "__array_function__" in maskwise.explain(c, Overriding(), f)


class Quantity(np.ndarray):
    """A subclass of NumPy's array that has its own where."""

    def __array_function__(self, function: Any, *_: object) -> str:
        return function.__name__


@pytest.mark.parametrize("shape", [(), (3,)])
def test_array_function_of_a_subclass_is_called(shape: tuple[int, ...]) -> None:
    assert maskwise.where(c, np.ones(shape).view(Quantity), 0.0) == "where"


def test_where_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(maskwise.where)) is maskwise.where


def another_thread_runs_during(x: Any, calls: int) -> bool:
    """Whether a waiting thread runs during the calls. The long switch interval keeps Python from
    releasing the GIL, so only a call can release the GIL."""
    condition, out = np.ones(x.shape, bool), np.empty_like(x)
    start, ran = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: start.wait() and ran.set())
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        start.set()
        for _ in range(calls):
            maskwise.where(condition, x, 1, out=out)
            if ran.is_set():
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_the_gil_is_released() -> None:
    assert another_thread_runs_during(np.zeros(1 << 24, np.uint8), 1000)
    assert another_thread_runs_during(np.zeros(1 << 20, np.float32), 1000)
    assert not another_thread_runs_during(np.zeros(100, np.uint8), 1000)


def test_threads_call_at_once() -> None:
    """All threads share the cache of recent plans."""
    failures = []

    def call(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(300):
            shape = tuple(random.integers(1, 40, 2))
            condition, x, y = random.random(shape) < 0.5, random.random(shape), random.random(shape)
            if maskwise.where(condition, x, y).tobytes() != np.where(condition, x, y).tobytes():
                failures.append(shape)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Two threads import maskwise._others at once, and the import is slow.
IMPORT_IN_TWO_THREADS = """
import sys, threading, time
import numpy as np
import maskwise

class Slow:
    def find_spec(self, name, *_):
        if name == "maskwise._others":
            time.sleep(0.2)

def call():
    both = np.zeros((4, 2))
    maskwise.where(np.ones(4, bool), both[:, 0], 1.0, out=both[:, 1])

sys.meta_path.insert(0, Slow())
threads = [threading.Thread(target=call) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_first_calls_of_two_threads_do_not_deadlock() -> None:
    assert run_python("-c", IMPORT_IN_TWO_THREADS).returncode == 0


# Packing an operand uses the stack of the calling thread.
SMALL_STACK = """
import threading
import numpy as np
import maskwise

condition, x, y = np.tri(200, 300, dtype=bool), np.zeros((300, 200)).T, np.ones((200, 300))

def call():
    for a, b, c in ((condition, x, y), (condition[:, ::3], x[:, ::3], y[:, ::3])):
        assert np.array_equal(maskwise.where(a, b, c), np.where(a, b, c))
    print("done")

threading.stack_size(128 << 10)
thread = threading.Thread(target=call)
thread.start()
thread.join()
"""


def test_threads_with_small_stacks() -> None:
    ran = run_python("-c", SMALL_STACK)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


# The main thread ends while other threads move elements or wait for the GIL.
END_AMID_CALLS = """
import sys, threading, time
import numpy as np
import maskwise

condition, x, y = np.zeros(100_000, bool), np.ones(100_000, "f"), np.ones(100_000)
call = {
    "plan": lambda: maskwise.where(condition, x, x),
    "cast": lambda: maskwise.where(condition, x, y),
    "select": lambda: maskwise.select(condition, x, x),
}[sys.argv[1]]

def forever():
    while True:
        call()

for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("form", ["plan", "cast", "select"])
def test_the_interpreter_ends_amid_calls(form: str) -> None:
    assert run_python("-c", END_AMID_CALLS, form).returncode == 0
