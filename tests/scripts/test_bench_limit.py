"""How the benchmark finds the limit and sets implementations against it, without a clock: a machine
with made-up times answers instead of the processes."""

import random
import statistics
from typing import Any

import cases
import measure
import pytest
import ways

WARM = 10e-3


class Machine:
    """Two threads, and a memory that is twice as slow for some tenths of a second now and then. A
    thread that slept comes late for 8 ms. Counts as bench_limit does (take_samples)."""

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
def test_the_best_way_is_found_on_a_memory_of_two_speeds(call_seconds: float) -> None:
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


def test_six_ways_are_kept_and_ranked_again_in_every_turn() -> None:
    machine = Machine(2, 1e-3)
    limit = make_limit(machine)
    limit.bind(640, 64)
    assert len(limit.kept) == 6
    first = limit.kept[0].number
    for _ in range(20):
        machine.cost[first] = 2.0
        limit.time_kept(4, 15e-3)
        assert sorted(machine.asked[-1]["ways"]) == sorted(way.number for way in limit.kept)
        assert machine.asked[-1]["warm"] == WARM
    assert limit.kept[0].number != first
    limit.time_best(4, 15e-3)
    assert machine.asked[-1]["ways"] == [limit.kept[0].number]


class Peer:
    """Answers as a client does; `seconds` a form."""

    def __init__(self, impl: str, log: list[str], seconds: dict[str, float]) -> None:
        self.impl = impl
        self.log = log
        self.seconds = seconds

    def ask(self, **keywords: object) -> dict[str, Any]:
        request: dict[str, Any] = keywords
        if request["do"] == "hello":
            return {"version": "7", "threads": 1, "forms": list(self.seconds)}
        if request["do"] == "load":
            return {"state": "right", "maskwise": True}
        self.log.append(f"{self.impl} {request['form']}".strip())
        return {"samples": [self.seconds[request["form"]]] * request["samples"]}

    def close(self) -> None: ...


class LoggedLimit(ways.Limit):
    def __init__(self, machine: Machine, log: list[str]) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self.log = log

    def time_kept(self, samples: int, seconds: float) -> None:
        self.log.append("ranked")
        super().time_kept(samples, seconds)

    def time_best(self, samples: int, seconds: float) -> list[float]:
        self.log.append("limit")
        return super().time_best(samples, seconds)


def run(peers: list[Peer], log: list[str]) -> dict[str, Any]:
    own = Peer("maskwise", log, {"": 1e-3})
    bench = measure.Bench(LoggedLimit(Machine(4, 1e-3), log), own, peers, "")  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "make_data", lambda *_: (640, 64))
        rows = bench.run(cases.shape_table()[0], measure.Effort(turns=2, pairs=2))
    return {row.impl: row for row in rows}


def test_maskwise_and_the_limit_are_measured_in_alternating_order() -> None:
    log: list[str] = []
    rows = run([], log)
    pairs = ["maskwise", "limit", "limit", "maskwise"]
    assert log == ["ranked", *pairs, "ranked", *pairs]
    assert rows["maskwise"].limit_fraction > 0.5


def test_both_forms_are_measured_in_every_turn_and_the_better_one_reported() -> None:
    log: list[str] = []
    rows = run([Peer("numpy", log, {"where": 3e-3, "copyto": 2e-3})], log)
    forms = [entry for entry in log if entry.startswith("numpy")]
    assert forms == ["numpy where", "numpy copyto", "numpy copyto", "numpy where"]
    assert rows["numpy"].seconds_median == 2e-3
    assert rows["numpy"].version == "7, copyto"
