"""The measurements of a case of the attention suite."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb

Samples = Callable[[], list[float]]  # measures, and returns milliseconds per call

CEILING = ("before", "after", "rows at the limit")
SLOW_MS = 150.0  # slower calls are measured in fewer turns: Measured.wants
ONE_SIDED = 0.025  # the interval misses the median with at most this probability on each side


def interval(ratios: list[float]) -> tuple[float, float]:
    """Returns the 95 % confidence interval of the ratios' median. Its ends are two of the sorted
    ratios, chosen by the binomial distribution, so the ratios may have any distribution. With fewer
    than six ratios, the interval covers all ratios, and its confidence is lower."""
    ordered, count, outside = sorted(ratios), len(ratios), 0
    while sum(comb(count, i) for i in range(outside + 1)) / 2**count <= ONE_SIDED:
        outside += 1
    outside = max(1, outside)
    return ordered[outside - 1], ordered[count - outside]


@dataclass
class Measured:
    """The times of one case with one installation of oneDNN (lane)."""

    case: str
    lane: str
    library: str = ""
    state: str = ""  # why there are no times
    claim: str = ""  # from Maskwise's verbose line
    samples: dict[str, list[float]] = field(default_factory=dict)
    row_bytes: int = 0
    shares: list[float] = field(default_factory=list)  # ceiling's time / Maskwise's, per turn
    ratios: list[float] = field(default_factory=list)  # oneDNN's time / Maskwise's, per turn
    again: list[float] = field(default_factory=list)  # median ratio of each pair of new processes

    def add_turn(self, taken: dict[str, list[float]]) -> None:
        now = {name: statistics.median(samples) for name, samples in taken.items() if samples}
        for name in now:
            self.samples.setdefault(name, []).extend(taken[name])
        if "onednn" in now and "maskwise" in now:
            self.ratios.append(now["onednn"] / now["maskwise"])
        if "rows at the limit" in now and "maskwise" in now:
            self.shares.append(sum(now.get(name, 0.0) for name in CEILING) / now["maskwise"])

    def wants(self, name: str, turn: int) -> bool:
        """Whether to measure `name` in this turn. Slow calls are measured in two turns. oneDNN and
        Maskwise are also measured in later turns while Maskwise was slower in all turns so far."""
        known = self.samples.get(name)
        if not known or turn < 2 or min(known) <= SLOW_MS:
            return True
        return name in ("onednn", "maskwise") and max(self.ratios, default=1.0) < 1.0

    def of_ceiling(self) -> float | None:
        return statistics.median(self.shares) if self.shares else None

    def median(self, part: str) -> float | None:
        taken = self.samples.get(part)
        return statistics.median(taken) if taken else None

    def times_faster(self) -> float | None:
        return statistics.median(self.ratios) if self.ratios else None

    def ceiling(self) -> float | None:
        """Returns the time of oneDNN's operators, plus the time to copy the bytes that Maskwise
        moves."""
        parts = [self.median(name) for name in CEILING]
        known = [part for part in parts if part is not None]
        return sum(known) if self.median("rows at the limit") is not None else None
