"""Measures one case by every implementation, in turns."""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cases import Case
from results import Row, complete, make_row
from worker import ROOT, Died, Worker

SLOW_SECONDS = 0.1  # a call slower than this is measured three times, not in every turn


@dataclass
class Effort:
    """How long a case is measured."""

    turns: int = 3
    pairs: int = 2  # of Maskwise and the limit, one right after the other, in each turn
    samples: int = 4  # of one implementation in each turn or pair
    seconds: float = 0.015  # about, for them
    ways: int = 3  # of the limit that are measured in each pair
    repeats_slow: bool = False  # also where a call takes longer than SLOW_SECONDS


@dataclass
class Taken:
    """The samples of one implementation, or why there are none."""

    samples: list[float] = field(default_factory=list)
    failure: str = ""


@dataclass
class Way:
    """A way of the limit to move the bytes."""

    threads: int
    samples: list[float] = field(default_factory=list)


@contextmanager
def data_folder() -> Iterator[str]:
    """In memory where the system has such a place: disks are not what is measured."""
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="maskwise-bench-", dir=parent) as folder:
        yield folder


@cache
def maskwise_version() -> str:
    found = re.search(r"project\(maskwise VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert found
    return found.group(1)


class Bench:
    def __init__(self, limit: Worker, own: Worker, peers: list[Worker], folder: str) -> None:
        self.limit = limit
        self.own = own
        self.peers = peers
        self.folder = folder
        self.about = {worker.impl: worker.ask(do="hello") for worker in [limit, own, *peers]}
        self.plan = ""  # of the case measured last, where the engine says it
        self.slow: set[tuple[str, str]] = set()  # implementation and row of the table

    def run(self, case: Case, effort: Effort) -> list[Row]:
        request = case.request(self.folder)
        needed = self.limit.ask(do="load", case=request)
        peers = [worker for worker in self.peers if self.is_worth_it(worker, case, effort)]
        taken = self.load_all([self.own, *peers], request)
        self.limit.ask(do="time", samples=2, max_seconds=effort.seconds, best=0)  # to rank them
        ways: dict[str, Way] = {}
        shares: list[float | None] = []
        for turn in range(effort.turns):
            for worker in peers:
                self.take(worker, taken[worker.impl], turn, effort)
            for _ in range(effort.pairs):
                shares.append(self.take_pair(ways, taken[self.own.impl], turn, effort))
        rows = [self.row(case, worker, taken[worker.impl]) for worker in [self.own, *peers]]
        rows.append(self.limit_row(case, ways))
        complete(rows, needed["read"] + needed["written"], [s for s in shares if s is not None])
        self.slow |= {
            (row.impl, case.name) for row in rows if (row.seconds_min or 0) > SLOW_SECONDS
        }
        return rows

    def is_worth_it(self, worker: Worker, case: Case, effort: Effort) -> bool:
        """What took long with the row's own mask is not measured again with four others."""
        own_mask = case.suite != "select" or case.own_mask
        return own_mask or effort.repeats_slow or (worker.impl, case.name) not in self.slow

    def load_all(self, workers: list[Worker], request: dict[str, Any]) -> dict[str, Taken]:
        """At the same time: nothing is timed yet."""
        with ThreadPoolExecutor(len(workers)) as pool:
            taken = pool.map(lambda worker: self.load(worker, request), workers)
            return dict(zip((worker.impl for worker in workers), taken, strict=True))

    def load(self, worker: Worker, request: dict[str, Any]) -> Taken:
        """Every implementation's answer is compared before it is timed."""
        try:
            answer = worker.ask(do="load", case=request)
        except (Died, RuntimeError) as error:
            return Taken(failure=str(error))
        if "plan" in answer:  # the engine's alone
            self.plan = answer["plan"]
        if answer["state"] == "wrong":
            return Taken(failure="wrong answer")
        if worker.impl == "maskwise" and answer["state"] == "right" and not answer["maskwise"]:
            return Taken(failure="oneDNN ran it, not Maskwise")
        return Taken(failure=answer.get("reason", ""))

    def take(self, worker: Worker, taken: Taken, turn: int, effort: Effort) -> list[float]:
        """The new samples, none where there can be none."""
        slow = bool(taken.samples) and min(taken.samples) > SLOW_SECONDS
        if taken.failure or (slow and turn >= 3):
            return []
        try:
            answer = worker.ask(do="time", samples=effort.samples, max_seconds=effort.seconds)
        except (Died, RuntimeError) as error:
            taken.failure = str(error)
            taken.samples = []
            return []
        samples: list[float] = answer["samples"]
        taken.samples += samples
        return samples

    def take_pair(
        self, ways: dict[str, Way], own: Taken, turn: int, effort: Effort
    ) -> float | None:
        """The limit's time over Maskwise's, measured right after each other."""
        mine = self.take(self.own, own, turn, effort)
        answer = self.limit.ask(
            do="time", samples=effort.samples, max_seconds=effort.seconds, best=effort.ways
        )
        for way in answer["variants"]:
            known = ways.setdefault(way["variant"], Way(way["threads"]))
            known.samples += way["samples"]
        best = min(statistics.median(way["samples"]) for way in answer["variants"])
        return best / statistics.median(mine) if mine else None

    def row(self, case: Case, worker: Worker, taken: Taken) -> Row:
        about = self.about[worker.impl]
        version = str(about["version"])
        if worker.impl == "maskwise":
            before = "" if version == "engine" else f" before oneDNN {version}"
            version = maskwise_version() + before
        if taken.failure:
            version += f": {taken.failure}"
        return make_row(case, worker.impl, version, taken.samples, about["threads"])

    def limit_row(self, case: Case, ways: dict[str, Way]) -> Row:
        """The way whose median is the lowest."""
        rows = [
            make_row(case, "limit", name, way.samples, way.threads)
            for name, way in ways.items()
            if len(way.samples) >= 3
        ]
        return min(rows, key=Row.median)

    def close(self) -> None:
        for worker in [self.limit, self.own, *self.peers]:
            worker.close()
