"""The benchmark finds the limit (the fastest way to move memory) on a simulated machine."""

import random
import statistics
from typing import Any

import pytest
import ways

WARM = 10e-3


class Machine:
    """Simulates ways to move memory. The first 14 ways use one thread. Other ways use two threads.

    Memory is sometimes twice as slow, for up to a second. Calls with two threads are slower until
    the threads have been awake for 8 ms. take_samples takes samples like bench_limit.
    """

    def __init__(self, seed: int, call_seconds: float) -> None:
        self.draw = random.Random(seed)
        self.call_seconds = call_seconds
        self.cost = [self.draw.uniform(1.3, 2.5) for _ in range(14)]
        self.cost += [self.draw.uniform(1.0, 1.6) for _ in range(38)]
        if seed % 5 == 0:
            self.cost[self.draw.randrange(14)] = 0.97
        self.now = self.changes = self.awake_for = 0.0
        self.is_fast = True
        self.spent = [0.0] * len(self.cost)
        self.asked: list[dict[str, Any]] = []

    def threads(self, way: int) -> int:
        return 1 if way < 14 else 2

    def call(self, way: int) -> float:
        while self.now >= self.changes:
            self.is_fast = not self.is_fast
            self.changes += self.draw.uniform(0.05, 1.0)
        seconds = self.call_seconds * self.cost[way] * self.draw.lognormvariate(0, 0.05)
        seconds *= 1 if self.is_fast else 2
        if self.threads(way) == 1:
            self.awake_for = 0.0
        else:
            seconds *= 1.8 if self.awake_for < 8e-3 else 1
            self.awake_for += seconds
        self.now += seconds
        self.spent[way] += seconds
        return seconds

    def take_samples(self, way: int, request: dict[str, Any], warm: float) -> list[float]:
        begin = self.now
        latest = self.call(way)
        if latest > (warm if warm < WARM else 0.1):
            return [latest]
        while self.now - begin < warm:
            latest = self.call(way)
        calls = max(1, int(100e-6 / latest))
        begin = self.now
        taken: list[float] = []
        while len(taken) < request["samples"] and self.now - begin <= request["max_seconds"]:
            taken.append(sum(self.call(way) for _ in range(calls)) / calls)
        return taken

    def ask(self, **keywords: object) -> dict[str, Any]:
        request: dict[str, Any] = keywords
        self.asked.append(request)
        if request["do"] == "hello":
            threads = [self.threads(way) for way in range(len(self.cost))]
            return {"ways": [{"name": str(i), "threads": n} for i, n in enumerate(threads)]}
        if request["do"] != "time":
            return {"read": 640, "written": 64}
        self.awake_for = 0.0
        taken: list[list[list[float]]] = [[] for _ in request["ways"]]
        is_awake = False
        for number in range(request["passes"]):
            order = list(enumerate(request["ways"]))
            for i, way in order if number % 2 == 0 else order[::-1]:
                late = self.threads(way) > 1 and not is_awake
                warm = max(request["warm"], WARM) if late else request["warm"]
                taken[i].append(self.take_samples(way, request, warm))
                is_awake = self.threads(way) > 1
        return {"taken": taken}


def make_limit(machine: Machine) -> ways.Limit:
    return ways.Limit(machine)  # type: ignore[arg-type]


@pytest.mark.parametrize("call_seconds", [200e-6, 1.3e-3])
def test_the_best_way_is_found_although_the_memory_has_two_speeds(call_seconds: float) -> None:
    missed = 0
    for seed in range(100):
        machine = Machine(seed, call_seconds)
        limit = make_limit(machine)
        limit.bind(640, 64)
        used = []
        for _ in range(3):
            limit.time_kept(4, 15e-3)
            used.append(machine.cost[limit.kept[0].number])
            limit.time_best(4, 15e-3)
        missed += statistics.median(used) > 1.1 * min(machine.cost)
    assert missed <= 1
