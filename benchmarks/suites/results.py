"""The results of measurements, and the file that stores them. The limit is the time of the fastest
way to move a case's bytes. A share of the limit is the limit divided by a row's time."""

import json
import re
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cases import Case

# The implementations of Select, with their names in tables and pictures.
NAMES = {
    "maskwise": "Maskwise",
    "onednn": "oneDNN alone",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "numpy": "NumPy",
    "numexpr": "numexpr",
}


@dataclass
class Row:
    """The result of one implementation for one case. If there are no times, `version` ends in a
    colon and the reason. A result above the limit is repeated twice. `again` has the share of the
    limit in each repetition."""

    suite: str
    case: str
    cond: str = ""
    src_0: str = ""
    src_1: str = ""
    dtype: str = ""
    mask: str = ""
    impl: str = ""
    version: str = ""
    seconds_median: float | None = None
    seconds_min: float | None = None
    bytes: int = 0
    limit_fraction: float | None = None
    threads: int = 0
    again: list[float] = field(default_factory=list)

    def key(self) -> tuple[str, str, str, str]:
        return self.suite, self.case, self.dtype, self.mask

    def is_of(self, case: Case) -> bool:
        return self.key() == (case.suite, case.name, case.dtype, case.mask)

    def median(self) -> float:
        assert self.seconds_median is not None
        return self.seconds_median


Rows = dict[str, Row]  # results of one case, by implementation


def fields_of(case: Case) -> dict[str, Any]:
    """Returns the fields that every record of a case begins with."""
    return {
        "suite": case.suite,
        "case": case.name,
        "cond": str(case.cond),
        "src_0": str(case.src_0),
        "src_1": str(case.src_1),
        "dtype": case.dtype,
        "mask": case.mask,
    }


def make_row(case: Case, impl: str, version: str, samples: list[float], threads: int) -> Row:
    return Row(
        **fields_of(case),
        impl=impl,
        version=version,
        seconds_median=statistics.median(samples) if samples else None,
        seconds_min=min(samples) if samples else None,
        threads=threads,
    )


def four_digits(value: float) -> float:
    """Rounds to four significant digits. A slow implementation's share may be below 0.0001."""
    return float(f"{value:.4g}")


def complete(rows: list[Row], bytes_needed: int, shares: list[float]) -> None:
    """Sets the bytes of the case and each row's share of the limit. Maskwise's share is the median
    of `shares`, which holds ratios of adjacent measurements: memory may be twice as fast in one
    second as in the next.
    """
    limit = next(row for row in rows if row.impl == "limit").median()
    for row in rows:
        row.bytes = bytes_needed
        if row.impl == "maskwise":
            row.limit_fraction = four_digits(statistics.median(shares)) if shares else None
        elif row.seconds_median is not None:
            row.limit_fraction = four_digits(limit / row.seconds_median)


def load(path: Path) -> list[Row]:
    if not path.exists():
        return []
    return [Row(**row) for row in json.loads(path.read_text())]


def save_rows(path: Path, suite: str, rows: list[Row]) -> list[Row]:
    """Replaces the suite's rows in the file and returns the file's new content."""
    all_rows = [row for row in load(path) if row.suite != suite] + rows
    partial = path.with_suffix(".partial")
    partial.write_text("[\n" + ",\n".join(json.dumps(asdict(row)) for row in all_rows) + "\n]\n")
    partial.rename(path)
    return all_rows


def by_case(rows: list[Row]) -> list[Rows]:
    """Returns the results of each case, in the order of measurement."""
    cases: dict[tuple[str, str, str, str], Rows] = {}
    for row in rows:
        cases.setdefault(row.key(), {})[row.impl] = row
    return list(cases.values())


def state_of(row: Row | None) -> str:
    """Returns measured, refused, wrong, died, or skipped (the implementation is too slow)."""
    if row is None:
        return "skipped"
    if row.seconds_median is not None:
        return "measured"
    failure = row.version.partition(": ")[2]
    if failure == "wrong answer":
        return "wrong"
    return "died" if failure.startswith("the process ended") else "refused"


def best_row(rows: Rows, impl: str) -> Row | None:
    """Returns the fastest row of `impl`. "onednn 3.7 passive" is also a row of "onednn"."""
    order = ("measured", "wrong", "died", "refused")
    forms = [row for name, row in rows.items() if name == impl or name.startswith(impl + " ")]
    key = lambda row: (order.index(state_of(row)), row.seconds_median or 0.0)  # noqa: E731
    return min(forms, key=key, default=None)


def versions_of(cases: list[Rows]) -> str:
    versions = {
        f"{NAMES[impl.split(' ')[0]]} {re.split('[:,]', row.version)[0]}"
        for rows in cases
        for impl, row in rows.items()
        if impl != "limit"
    }
    return ", ".join(sorted(versions))
