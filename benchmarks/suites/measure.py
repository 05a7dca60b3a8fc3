"""Measures a case in every implementation, in turns."""

import re
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cases import Case
from results import Row, complete, make_row
from ways import Limit
from worker import ROOT, Died, Worker

SLOW_SECONDS = 0.1  # slower calls are measured in three turns only


@dataclass
class Effort:
    """How long a case is measured."""

    turns: int = 3
    pairs: int = 2  # pairs of Maskwise's and the limit's samples, per turn
    samples: int = 4  # samples of one implementation per turn or pair
    seconds: float = 0.015  # approximate seconds for these samples
    repeats_slow: bool = False  # whether slow implementations also run rows with other masks


@dataclass
class Taken:
    """One implementation's samples by form (a way to call the library), or why there are none."""

    forms: dict[str, list[float]]
    failure: str = ""

    def best(self) -> str:
        """Returns the form with the lowest median."""
        measured = [form for form, samples in self.forms.items() if samples]
        return min(measured, key=lambda form: statistics.median(self.forms[form]), default="")

    def samples(self) -> list[float]:
        return self.forms.get(self.best(), [])


@contextmanager
def data_folder() -> Iterator[str]:
    """Yields a temporary folder: in /dev/shm if possible, because disks are slower."""
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="maskwise-bench-", dir=parent) as folder:
        yield folder


def make_data(case: Case, folder: str) -> tuple[int, int]:
    """Imports select_data here, because not every caller's Python has NumPy."""
    from select_data import make

    return make(case, folder)


@cache
def maskwise_version() -> str:
    header = (ROOT / "include/maskwise/version.h").read_text()
    return ".".join(re.findall(r"^#define MASKWISE_VERSION_\w+ (\d+)$", header, re.MULTILINE))


class Bench:
    def __init__(self, limit: Limit, subject: Worker, peers: list[Worker], folder: str) -> None:
        self.limit = limit
        self.subject = subject
        self.peers = peers
        self.folder = folder
        self.about = {worker.impl: worker.ask(do="hello") for worker in [subject, *peers]}
        self.plan = ""  # the last plan that the engine reported
        self.slow: set[tuple[str, str]] = set()  # slow implementations, with the row of shapes.txt

    def run(self, case: Case, effort: Effort, only: set[str] | None = None) -> list[Row]:
        """Measures Maskwise, the limit, and each peer for which `is_worth_it` is true. If `only` is
        set, leaves out all other peers."""
        request = case.request(self.folder)
        needed = make_data(case, self.folder)
        self.limit.bind(*needed)
        peers = [
            worker
            for worker in self.peers
            if (only is None or worker.impl in only) and self.is_worth_it(worker, case, effort)
        ]
        taken = self.load_all([self.subject, *peers], request)
        shares: list[float] = []
        for turn in range(effort.turns):
            for worker in peers:
                self.take_turn(worker, taken[worker.impl], turn, effort)
            self.limit.time_kept(effort.samples, effort.seconds)
            for pair in range(effort.pairs):
                first = (turn * effort.pairs + pair) % 2 == 0
                shares += self.take_pair(taken[self.subject.impl], turn, effort, own_first=first)
        rows = [self.row(case, worker, taken[worker.impl]) for worker in [self.subject, *peers]]
        best = self.limit.kept[0]
        rows.append(make_row(case, "limit", best.name, best.passes, best.threads))
        complete(rows, sum(needed), shares)
        self.slow |= {
            (row.impl, case.name) for row in rows if (row.seconds_min or 0) > SLOW_SECONDS
        }
        return rows

    def is_worth_it(self, worker: Worker, case: Case, effort: Effort) -> bool:
        """Whether to measure the case. If the implementation was slow on an earlier case of the
        row, measures only the mask of shapes.txt. With `repeats_slow`, measures all masks."""
        own_mask = case.suite != "select" or case.own_mask
        return own_mask or effort.repeats_slow or (worker.impl, case.name) not in self.slow

    def load_all(self, workers: list[Worker], request: dict[str, Any]) -> dict[str, Taken]:
        """Loads the case in all processes in parallel, because nothing is timed yet."""
        with ThreadPoolExecutor(len(workers)) as pool:
            taken = pool.map(lambda worker: self.load(worker, request), workers)
            return dict(zip((worker.impl for worker in workers), taken, strict=True))

    def load(self, worker: Worker, request: dict[str, Any]) -> Taken:
        """Loads the case. The process compares its result with the expected result."""
        taken = Taken({form: [] for form in self.about[worker.impl].get("forms", [""])})
        try:
            answer = worker.ask(do="load", case=request)
        except (Died, RuntimeError) as error:
            taken.failure = str(error)
            return taken
        if "plan" in answer:  # only the engine reports plans
            self.plan = answer["plan"]
        taken.failure = answer.get("reason", "")
        if answer["state"] == "wrong":
            taken.failure = "wrong answer"
        elif worker.impl == "maskwise" and answer["state"] == "right" and not answer["maskwise"]:
            taken.failure = "oneDNN ran the case, not Maskwise"
        return taken

    def take_turn(self, worker: Worker, taken: Taken, turn: int, effort: Effort) -> None:
        """Measures each form once. Every second turn runs in reverse order."""
        for form in list(taken.forms)[:: 1 if turn % 2 == 0 else -1]:
            self.take(worker, taken, form, turn, effort)

    def take(
        self, worker: Worker, taken: Taken, form: str, turn: int, effort: Effort
    ) -> list[float]:
        """Measures a form, adds the samples to `taken` and returns them. The list is empty if the
        implementation failed, or if the form is slow and three turns have passed."""
        known = taken.forms[form]
        slow = bool(known) and min(known) > SLOW_SECONDS
        if taken.failure or (slow and turn >= 3):
            return []
        try:
            answer = worker.ask(
                do="time", samples=effort.samples, max_seconds=effort.seconds, form=form
            )
        except (Died, RuntimeError) as error:
            taken.failure = str(error)
            taken.forms = {form: [] for form in taken.forms}
            return []
        samples: list[float] = answer["samples"]
        known += samples
        return samples

    def take_pair(self, subject: Taken, turn: int, effort: Effort, own_first: bool) -> list[float]:
        """Measures Maskwise and the limit right after each other. Returns [limit's time /
        Maskwise's time], or [] if Maskwise was not measured."""
        mine = self.take(self.subject, subject, "", turn, effort) if own_first else []
        limit = self.limit.time_best(effort.samples, effort.seconds)
        if not own_first:
            mine = self.take(self.subject, subject, "", turn, effort)
        return [statistics.median(limit) / statistics.median(mine)] if mine else []

    def row(self, case: Case, worker: Worker, taken: Taken) -> Row:
        about = self.about[worker.impl]
        version = str(about["version"])
        if worker.impl == "maskwise":
            before = "" if version == "engine" else f" before oneDNN {version}"
            version = maskwise_version() + before
        if taken.best():
            version += f", {taken.best()}"
        if taken.failure:
            version += f": {taken.failure}"
        return make_row(case, worker.impl, version, taken.samples(), about["threads"])

    def close(self) -> None:
        self.limit.close()
        for worker in [self.subject, *self.peers]:
            worker.close()
