"""The targets of the Select suites, and their comparison with the measured values. results.py
defines the limit and shares of the limit."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from cases import core_cache_bytes
from extras import COPY_RATIO
from results import Row, Rows, best_row, state_of, versions_of
from table import markdown

LARGE_BYTES = 128_000_000
NATIVE = "64 on "
MEMORY_BYTES = 8 << 20
ABOVE = 1.1  # a result with a larger share of the limit counts as faster than the limit

HEAD = ["what", "target", "measured", "cases", "verdict"]


@dataclass
class Line:
    about: str
    target: str
    measured: str
    counts: str  # the number of cases by state
    holds: bool | None  # None: not measured

    def cells(self) -> list[str]:
        verdict = {True: "holds", False: "MISSED", None: "not measured"}[self.holds]
        return [self.about, self.target, self.measured, self.counts, verdict]


Values = list[tuple[float, str]]  # values with the names of their cases, ascending


@dataclass
class Measured:
    """The values and the states of a set of cases."""

    values: Values
    states: Counter[str]

    def median(self) -> float:
        return self.values[len(self.values) // 2][0]

    def tail(self) -> float:
        """The 5th percentile."""
        return self.values[len(self.values) // 20][0]

    def text(self) -> str:
        always = ("measured", "refused", "wrong", "skipped")
        others = [state for state in sorted(self.states) if state not in always]
        return ", ".join(f"{self.states[state]} {state}" for state in (*always, *others))


def dims(text: str) -> list[int]:
    shape = text.split("@")[0]
    return [] if shape == "-" else [int(extent) for extent in shape.split("x")]


def columns(rows: Rows) -> int:
    maskwise = rows["maskwise"]
    return max((dims(text) or [1])[-1] for text in (maskwise.cond, maskwise.src_0, maskwise.src_1))


def walks_rows(rows: Rows) -> bool:
    """Whether each operand has full contiguous rows or one element, so no operand needs packing."""
    maskwise = rows["maskwise"]
    for text in (maskwise.cond, maskwise.src_0, maskwise.src_1):
        strides = [int(stride) for stride in text.split("@")[1].split("x")] if "@" in text else [1]
        one = prod(dims(text)) == 1 or not any(strides)
        if not one and (dims(text)[-1] != columns(rows) or strides[-1] != 1):
            return False
    return True


def is_same(rows: Rows) -> bool:
    maskwise = rows["maskwise"]
    return maskwise.cond == maskwise.src_0 == maskwise.src_1


def expands_cond_or_src_0(rows: Rows) -> bool:
    maskwise = rows["maskwise"]
    counts = [prod(dims(text)) for text in (maskwise.cond, maskwise.src_0, maskwise.src_1)]
    return min(counts[0], counts[1]) < max(counts)


def name_of(rows: Rows) -> str:
    maskwise = rows["maskwise"]
    return f"{maskwise.case} {maskwise.dtype} {maskwise.mask}"


def fractions(cases: Iterable[Rows]) -> Measured:
    values, states = [], Counter[str]()
    for rows in cases:
        share = rows["maskwise"].limit_fraction
        values.append((share if share is not None else 0.0, name_of(rows)))
        states[state_of(rows["maskwise"])] += 1
    return Measured(sorted(values), states)


def at_least(about: str, target: float, measured: Measured, unit: str = "") -> Line:
    """Returns a line with the worst value, the median, and how many values miss the target."""
    values = measured.values
    if not values:
        return Line(about, f"at least {target:g}{unit}", "-", measured.text(), None)
    worst, name = values[0]
    missed = sum(value < target for value, _ in values)
    text = f"least {worst:.2f}{unit} ({name}), median {measured.median():.2f}{unit}"
    if missed:
        text += f"; {missed} of {len(values)} below"
    return Line(about, f"at least {target:g}{unit}", text, measured.text(), missed == 0)


def times_as_fast(cases: Iterable[Rows], impl: str) -> Measured:
    values, states = [], Counter[str]()
    for rows in cases:
        maskwise, other = rows["maskwise"], best_row(rows, impl)
        states[state_of(other)] += 1
        if other and other.seconds_median is not None:
            speed = 0.0 if maskwise.seconds_median is None else other.median() / maskwise.median()
            values.append((speed, name_of(rows)))
    return Measured(sorted(values), states)


def beyond_l2(cases: list[Rows]) -> list[Rows]:
    return [rows for rows in cases if rows["limit"].bytes > core_cache_bytes()]


def large_and_direct(cases: list[Rows]) -> list[Rows]:
    large = [rows for rows in beyond_l2(cases) if rows["limit"].bytes >= LARGE_BYTES]
    return list(filter(walks_rows, large))


def select_lines(cases: list[Rows]) -> list[Line]:
    beyond = beyond_l2(cases)
    single = [rows for rows in beyond if rows["limit"].dtype == "f32"]
    peers = [("onnxruntime", 2.0), ("openvino", 1.5), ("numpy", 5.0)]
    in_l2 = [rows for rows in cases if name_of(rows) == "35 f32 random"]
    same = filter(is_same, single)
    expanded = filter(expands_cond_or_src_0, single)
    direct = large_and_direct(cases)
    return [
        at_least(
            "select, large, contiguous or row-broadcast: of the limit", 0.9, fractions(direct)
        ),
        at_least("select, beyond L2: of the limit", 0.75, fractions(beyond)),
        at_least("f32, same shapes: against oneDNN", 1.2, times_as_fast(same, "onednn"), "x"),
        at_least(
            "f32, cond or src_0 broadcast: against oneDNN",
            100,
            times_as_fast(expanded, "onednn"),
            "x",
        ),
        *(
            at_least(f"select, beyond L2: against {peer}", times, times_as_fast(beyond, peer), "x")
            for peer, times in peers
        ),
        at_least("32x1024 f32, in L2: against oneDNN", 1.5, times_as_fast(in_l2, "onednn"), "x"),
    ]


def sweep_lines(cases: list[Rows]) -> list[Line]:
    about, target = "sweep, p5 / minimum: of the limit", "at least 0.50 / 0.25"
    measured = fractions(cases)
    if not measured.values:
        return [Line(about, target, "-", measured.text(), None)]
    tail, (least, name) = measured.tail(), measured.values[0]
    text = f"p5 {tail:.2f}, least {least:.2f} (case {name}), median {measured.median():.2f}"
    holds = tail >= 0.5 and least >= 0.25
    return [Line(about, target, text, measured.text(), holds)]


def at_most(about: str, target: float, value: float | None, unit: str, count_text: str) -> Line:
    bound = f"at most {target:g} {unit}"
    if value is None:
        return Line(about, bound, "-", count_text, None)
    return Line(about, bound, f"{value:.3g} {unit}", count_text, value <= target)


def small_lines(cases: list[Rows]) -> list[Line]:
    native = [rows for rows in cases if rows["maskwise"].case.startswith(NATIVE)]
    measured = fractions(native)
    seconds = [rows["maskwise"].seconds_median or math.inf for rows in native]
    micros = seconds[0] * 1e6 if seconds else None
    about = "64 elements through the C ABI, native runtime"
    return [at_most(about, 0.2, micros, "us", measured.text())]


def note_lines(notes: dict[str, Any]) -> list[Line]:
    lines = []
    for name, times in notes.items():
        if name.startswith("compile "):
            known, new = times["again"] * 1e6, times["first"] * 1e6
            count_text = f"median of {times['count']} descriptors"
            lines.append(at_most(f"{name}, known descriptor", 2, known, "us", count_text))
            lines.append(at_most(f"{name}, new descriptor", 20, new, "us", count_text))
    memory = notes["memory"]
    extra = (memory["maskwise"] - memory["onednn"]) / (1 << 20)
    most = MEMORY_BYTES / (1 << 20)
    about = "peak memory over oneDNN alone, 1024x4096 f32"
    lines.append(
        at_most(
            about, most, extra, "MiB", f"minimum of {memory['processes']} processes per library"
        )
    )
    return lines


def is_above(row: Row) -> bool:
    """Whether the share of the limit is above ABOVE, and the case exceeds L2. Smaller cases are
    excluded because of the overhead of a call."""
    return row.bytes > core_cache_bytes() and (row.limit_fraction or 0.0) > ABOVE


def limit_line(all_cases: list[Rows]) -> Line:
    """Lists the results above the limit. Leaves out a repeated result whose repetitions were all
    below ABOVE, because a single result above the limit may be noise."""
    larger = beyond_l2(all_cases)
    measured = [
        (row.limit_fraction, row, name_of(rows))
        for rows in larger
        for impl, row in rows.items()
        if impl != "limit" and row.limit_fraction is not None
    ]
    above = [(row, name) for _, row, name in measured if is_above(row)]
    twice = [
        f"{name}, {row.impl}: {row.limit_fraction:.2f}, "
        + ", ".join(f"{share:.2f}" for share in row.again)
        for row, name in above
        if not row.again or max(row.again) > ABOVE
    ]
    most, row, name = max(measured, key=lambda entry: entry[0], default=(0.0, None, "-"))
    text = f"most {most:.2f} ({name}, {row.impl if row else '-'}); {len(above)} above"
    text += f", {len(twice)} of them not refuted by repetitions" + "".join(
        f"; {again}" for again in twice
    )
    impls = {(row.suite, impl) for rows in larger for impl, row in rows.items() if impl != "limit"}
    states = Counter(
        state_of(rows.get(impl))
        for rows in larger
        for suite, impl in impls
        if suite == rows["limit"].suite
    )
    holds = not twice if measured else None
    count_text = Measured([], states).text()
    return Line(
        "largest share of the limit, without results that repetitions refuted",
        f"at most {ABOVE}",
        text,
        count_text,
        holds,
    )


def copy_line(copies: dict[str, float]) -> Line:
    text = ", ".join(
        f"{name} {value}" for name, value in copies.items() if name not in (COPY_RATIO, "pairs")
    )
    ratio = copies[COPY_RATIO]
    about = "copy of 128 MiB on one thread: the limit's time / NumPy's time; the rates in GB/s"
    pairs = f"median of {copies['pairs']:g} pairs"
    return Line(about, f"at most {ABOVE}", f"{ratio:.2f}: {text}", pairs, ratio <= ABOVE)


def lines_of(all_cases: list[Rows], notes: dict[str, Any]) -> list[Line]:
    by_suite = {
        suite: [rows for rows in all_cases if rows["limit"].suite == suite]
        for suite in ("select", "sweep", "small")
    }
    lines = (
        select_lines(by_suite["select"])
        + sweep_lines(by_suite["sweep"])
        + small_lines(by_suite["small"])
    )
    return [*lines, *note_lines(notes), limit_line(all_cases), copy_line(notes["copies"])]


def missed(lines: list[Line]) -> list[str]:
    return [
        f"missed: {line.about}: {line.measured}; target {line.target}"
        for line in lines
        if line.holds is False
    ]


def report(all_cases: list[Rows], lines: list[Line], facts: dict[str, str]) -> str:
    head = [f"{facts['machine']}; {facts['began']}", versions_of(all_cases[:40])]
    return "\n".join(["", *head, "", markdown(HEAD, [line.cells() for line in lines])])
