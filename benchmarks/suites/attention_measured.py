"""What the attention suite measures of a case."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


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

    def median(self, part: str) -> float | None:
        taken = self.samples.get(part)
        return statistics.median(taken) if taken else None

    def times_faster(self) -> float | None:
        alone, own = self.median("onednn"), self.median("maskwise")
        return alone / own if alone and own else None

    def ceiling(self) -> float | None:
        """What oneDNN keeps, and the bytes of the rest at the speed of memory or cache."""
        parts = [self.median(name) for name in ("before", "after", "rows at the limit")]
        known = [part for part in parts if part is not None]
        return sum(known) if self.median("rows at the limit") is not None else None
