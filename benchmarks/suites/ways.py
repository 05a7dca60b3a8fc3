"""The limit: the fastest of many ways to move the bytes that a case reads and writes."""

import statistics
from dataclasses import dataclass, field

from worker import Worker

WARM_SECONDS = 10e-3  # as in common/serve.hpp
RANKING_PASSES = 6
AS_MANY_AS_FIT = 1000
KEPT = 6  # ways that every turn measures again


@dataclass
class Way:
    number: int
    name: str
    threads: int
    passes: list[float] = field(default_factory=list)  # median seconds of each pass


def ranked(ways: list[Way]) -> list[Way]:
    """Returns the ways, fastest first. Divides each time by the pass's median, because slow memory
    slows all ways of a pass."""
    columns = zip(*(way.passes for way in ways), strict=True)
    middles: list[float] = [statistics.median(seconds) for seconds in columns]

    def relative(way: Way) -> float:
        pairs = zip(way.passes, middles, strict=True)
        return statistics.median(seconds / middle for seconds, middle in pairs)

    return sorted(ways, key=relative)


class Limit:
    """Finds the fastest way. First, each way runs for 10 ms in total, in passes over all ways. Then
    each turn of a case measures the best ways again, with the warm-up of the implementations. Each
    turn ranks these ways by all measurements."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.about = worker.ask(do="hello")
        self.kept: list[Way] = []

    def bind(self, read: int, written: int, threads: int | None = None) -> None:
        """Ranks the ways to read and write these numbers of bytes. If `threads` is set, ranks only
        ways with this number of threads."""
        self.worker.ask(do="bind", read=read, written=written)
        self.rank(threads)

    def rank(self, threads: int | None = None) -> None:
        all_ways = [Way(number, **about) for number, about in enumerate(self.about["ways"])]
        ways = [way for way in all_ways if threads in (None, way.threads)]
        half_pass = WARM_SECONDS / RANKING_PASSES / 2
        self.time(ways, AS_MANY_AS_FIT, half_pass, half_pass, RANKING_PASSES)
        self.kept = ranked(ways)[:KEPT]

    def time_kept(self, samples: int, seconds: float) -> None:
        self.time(self.kept, samples, seconds)
        self.kept = ranked(self.kept)

    def time_best(self, samples: int, seconds: float) -> list[float]:
        best = self.kept[0]
        return self.ask([best], samples, seconds, WARM_SECONDS, 1)[0][0]

    def time(
        self,
        ways: list[Way],
        samples: int,
        seconds: float,
        warm: float = WARM_SECONDS,
        passes: int = 1,
    ) -> None:
        taken = self.ask(ways, samples, seconds, warm, passes)
        for way, of_way in zip(ways, taken, strict=True):
            way.passes += [statistics.median(of_pass) for of_pass in of_way]

    def ask(
        self, ways: list[Way], samples: int, seconds: float, warm: float, passes: int
    ) -> list[list[list[float]]]:
        """Returns the samples of each way and pass, in seconds."""
        taken: list[list[list[float]]] = self.worker.ask(
            do="time",
            ways=[way.number for way in ways],
            passes=passes,
            samples=samples,
            max_seconds=seconds,
            warm=warm,
        )["taken"]
        return taken

    def close(self) -> None:
        self.worker.close()
