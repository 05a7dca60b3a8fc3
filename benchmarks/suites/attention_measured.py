"""What the attention suite measures of a case."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

CEILING = ("before", "after", "rows at the limit")


@dataclass
class Measured:
    """Milliseconds of one case in one lane."""

    case: str
    lane: str
    library: str = ""
    state: str = ""  # why there are no times, where there are none
    claim: str = ""  # what Maskwise says that it runs
    samples: dict[str, list[float]] = field(default_factory=dict)
    row_bytes: int = 0
    shares: list[float] = field(default_factory=list)  # of the ceiling, turn by turn

    def add_turn(self, taken: dict[str, list[float]]) -> None:
        for name, samples in taken.items():
            self.samples.setdefault(name, []).extend(samples)
        now = {name: statistics.median(samples) for name, samples in taken.items()}
        if "rows at the limit" in now and "maskwise" in now:
            self.shares.append(sum(now.get(name, 0.0) for name in CEILING) / now["maskwise"])

    def of_ceiling(self) -> float | None:
        return statistics.median(self.shares) if self.shares else None

    def median(self, part: str) -> float | None:
        taken = self.samples.get(part)
        return statistics.median(taken) if taken else None

    def times_faster(self) -> float | None:
        alone, own = self.median("onednn"), self.median("maskwise")
        return alone / own if alone and own else None

    def ceiling(self) -> float | None:
        """What oneDNN keeps, and the bytes of the rest at the speed of memory or cache."""
        parts = [self.median(name) for name in CEILING]
        known = [part for part in parts if part is not None]
        return sum(known) if self.median("rows at the limit") is not None else None
