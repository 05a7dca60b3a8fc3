"""where() on Dask arrays: block by block, on threads and on a cluster of two processes."""

from __future__ import annotations

import os
from typing import Any

import maskwise
import numpy as np
import pytest
from arrays import assert_same_bits

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

random = np.random.default_rng(1)
c = random.random((100, 90)) < 0.5
x = random.random((100, 90)).astype("f")
y = random.random(90).astype("f")


def blocks() -> tuple[Any, Any, Any]:
    """Operands whose chunks do not align. The third operand has fewer dimensions."""
    return (
        da.from_array(c, chunks=(30, 40)),
        da.from_array(x, chunks=(50, 25)),
        da.from_array(y, chunks=60),
    )


def test_block_by_block() -> None:
    lazy = maskwise.where(*blocks())
    assert isinstance(lazy, da.Array) and lazy.npartitions > 1 and lazy.dtype == np.float32
    assert_same_bits(lazy.compute(), np.where(c, x, y))


@pytest.mark.parametrize("which", range(3))
def test_dask_arrays_mix_with_arrays_and_numbers(which: int) -> None:
    operands: list[Any] = [c, x, 0.5]
    operands[which] = da.from_array(np.asarray(operands[which]), chunks=40)
    lazy = maskwise.where(*operands)
    assert isinstance(lazy, da.Array)
    assert lazy.compute().tolist() == np.where(c, x, np.asarray(operands[2])).tolist()


def test_refusals_and_explanation() -> None:
    with pytest.raises(TypeError, match="out must be None"):
        maskwise.where(*blocks(), out=np.empty((100, 90), "f"))
    with pytest.raises(ValueError, match="broadcast"):
        maskwise.where(blocks()[0], x[:, :7], y)
    assert maskwise.explain(*blocks()).startswith("dask: maskwise.where for each block")


def pid_of_block(condition: Any, a: Any, b: Any) -> Any:
    """A block filled with this process's id if where() is right, else with -1."""
    right = maskwise.where(condition, a, b).tobytes() == np.where(condition, a, b).tobytes()
    return np.full(condition.shape, os.getpid() if right else -1)


def test_two_workers() -> None:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        assert_same_bits(maskwise.where(*blocks()).compute(), np.where(c, x, y))
        workers = set(client.run(os.getpid).values())
        assert len(workers) == 2
        for worker in client.scheduler_info()["workers"]:
            future = client.submit(pid_of_block, c, x, y, workers=[worker], pure=False)
            assert set(np.unique(future.result())) <= workers
