"""One Select in memory, by Dask's threads, and by a cluster of two processes on this machine."""

import statistics
from collections.abc import Callable

import dask.array as da
import maskwise
import numpy as np
from distributed import Client, LocalCluster
from turns import seconds_a_call

ROWS, COLUMNS = 8192, 8192
CHUNKS = (1024, 8192)


def show(name: str, call: Callable[[], object]) -> None:
    median = statistics.median(seconds_a_call(call) for _ in range(5))
    print(f"| {name} | {median * 1e3:.0f} ms |", flush=True)


def lazy_sum(where: Callable[..., da.Array]) -> Callable[[], object]:
    """Arrays that are made, selected from and summed up block by block: never whole in memory."""
    x = da.random.default_rng(1).random((ROWS, COLUMNS), dtype="f4", chunks=CHUNKS)
    return lambda: where(x < 0.5, x, 0.0).sum().compute()


def main() -> None:
    x = np.random.default_rng(1).random((ROWS, COLUMNS), dtype="f4")
    condition = x < 0.5
    print("| 8192x8192 f32, random | |\n|---|---|")
    show("in memory, numpy.where", lambda: np.where(condition, x, 0.0))
    show("in memory, maskwise.where", lambda: maskwise.where(condition, x, 0.0))
    lazy, lazy_condition = (da.from_array(array, chunks=CHUNKS) for array in (x, condition))
    show(
        "in memory, by Dask's threads", lambda: maskwise.where(lazy_condition, lazy, 0.0).compute()
    )
    show("made and summed by Dask's threads, numpy.where", lazy_sum(da.where))
    show("made and summed by Dask's threads, maskwise.where", lazy_sum(maskwise.where))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        show(
            "in memory, sent to two processes and back",
            maskwise.where(lazy_condition, lazy, 0.0).compute,
        )
        show("made and summed by two processes, numpy.where", lazy_sum(da.where))
        show("made and summed by two processes, maskwise.where", lazy_sum(maskwise.where))


if __name__ == "__main__":
    main()
