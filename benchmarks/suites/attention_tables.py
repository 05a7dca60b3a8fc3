"""The attention suite's table for the documents."""

from collections.abc import Iterable

from attention_client import NEWEST_LANE
from attention_measured import Measured
from table import Cells, time_text, times_text


def ms_text(milliseconds: float | None) -> str:
    return time_text(milliseconds / 1e3 if milliseconds else None)


def times_of(measured: Measured) -> str:
    alone, maskwise = measured.median("onednn"), measured.median("maskwise")
    return times_text(alone, maskwise) if alone and maskwise else "-"


def listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "-"


def libraries_of(all_measured: Iterable[Measured]) -> list[str]:
    return list(dict.fromkeys(measured.library for measured in all_measured))


def attention_row(measured: Measured, other_lanes: list[Measured]) -> list[str]:
    share = measured.of_ceiling()
    parts = [measured.median(part) or 0.0 for part in ("before", "after")]
    same = [other for other in other_lanes if other.case == measured.case]
    return [
        measured.case,
        ms_text(measured.median("onednn")),
        ms_text(measured.median("maskwise")),
        times_of(measured),
        f"{share:.2f}" if share else "-",
        ms_text(sum(parts)),
        listed(f"{other.lane}: {times_of(other)}" for other in same),
    ]


def attention_table(all_measured: list[Measured]) -> Cells:
    timed = [measured for measured in all_measured if measured.times_faster() is not None]
    newest = [measured for measured in timed if measured.lane == NEWEST_LANE]
    others = [measured for measured in timed if measured.lane != NEWEST_LANE]
    head = ["case", "oneDNN alone", "with Maskwise", "times faster", "of its ceiling"]
    head += ["oneDNN's parts", "times faster on other lanes"]
    rows = [attention_row(measured, others) for measured in newest]
    return listed(libraries_of(newest)), head, rows
