"""What more cores would do, by a model: the table "model" of scripts/bench.

Bytes move as fast as the memory or, together, the cores can move them, whichever is slower, and the
threads must wake before. A core moves as much as one here did; other machines are assumed.
"""

from dataclasses import dataclass
from typing import Any

from table import Cells, time_text

CHANNEL_GBS = 38.4  # DDR5-4800
CHANNELS = 8  # a socket
REACHED = 0.8  # of what the channels could carry
LINK_GBS = 100.0  # between two sockets, each way
SOCKET_GBS = REACHED * CHANNELS * CHANNEL_GBS
CORES = 16  # a socket
WAKE_SECONDS = 10e-6

MEBIBYTES = (64, 256, 2048)  # beyond the caches, in which other rates hold


@dataclass(frozen=True)
class Machine:
    name: str
    threads: int
    memory_gbs: float


def machines(core_gbs: float, all_cores_gbs: float, threads: int) -> list[Machine]:
    """Without knowledge of where pages are, half of what a core moves is on the other socket, and
    a quarter of all bytes crosses the link each way."""
    here_gbs = max(core_gbs, all_cores_gbs)
    spread_gbs = min(2 * SOCKET_GBS, 4 * LINK_GBS)
    return [
        Machine("1 thread here", 1, here_gbs),
        Machine(f"{threads} threads here", threads, here_gbs),
        Machine(f"{CORES} cores", CORES, SOCKET_GBS),
        Machine(f"2 x {CORES} cores, pages on one socket", 2 * CORES, SOCKET_GBS),
        Machine(f"2 x {CORES} cores, pages on both", 2 * CORES, spread_gbs),
    ]


def seconds(moved_bytes: int, machine: Machine, core_gbs: float) -> float:
    rate = min(machine.memory_gbs, machine.threads * core_gbs) * 1e9
    return moved_bytes / rate + (WAKE_SECONDS if machine.threads > 1 else 0.0)


def assumptions(core_gbs: float) -> str:
    return (
        f"a model, not measured: {core_gbs:g} GB/s a core, as a copy here; assumed: "
        f"{SOCKET_GBS:.0f} GB/s a socket ({CHANNELS} channels of DDR5-4800, {REACHED:g} of them), "
        f"{LINK_GBS:g} GB/s each way between sockets, {WAKE_SECONDS * 1e6:g} us to wake the threads"
    )


def table(copies: dict[str, Any], threads: int) -> Cells:
    """From the copies that this run of scripts/bench has measured."""
    one, every = (copies[f"limit, {which}"] for which in ("one thread", "all threads"))
    columns = machines(one, every, threads)
    rows = []
    for size in MEBIBYTES:
        spent = [seconds(size << 20, machine, one) for machine in columns]
        rows.append([f"{size} MiB", *map(time_text, spent)])
    return assumptions(one), ["moved", *(machine.name for machine in columns)], rows
