"""The numbers to reach, each beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from cases import CACHES
from results import Row

LARGE_BYTES = 128_000_000
NATIVE = "64 on "
MEMORY_BYTES = 8 << 20

Rows = dict[str, Row]


@dataclass
class Line:
    what: str
    target: str
    measured: str
    holds: bool | None  # None: not measured

    def text(self) -> str:
        verdict = {True: "holds", False: "MISSED", None: "not measured"}[self.holds]
        return f"| {self.what} | {self.target} | {self.measured} | {verdict} |"


def core_cache_bytes() -> int:
    """One core's L2."""
    sizes = [
        int((index / "size").read_text().strip()[:-1]) << 10
        for index in CACHES.glob("index*")
        if (index / "level").read_text().strip() == "2"
    ]
    return max(sizes, default=1 << 20)


def dims(text: str) -> list[int]:
    shape = text.split("@")[0]
    return [] if shape == "-" else [int(extent) for extent in shape.split("x")]


def columns(rows: Rows) -> int:
    own = rows["maskwise"]
    return max((dims(text) or [1])[-1] for text in (own.cond, own.src_0, own.src_1))


def walks_rows(rows: Rows) -> bool:
    """Every operand is contiguous, a row repeated, or a scalar: nothing to pack."""
    own = rows["maskwise"]
    for text in (own.cond, own.src_0, own.src_1):
        strides = [int(stride) for stride in text.split("@")[1].split("x")] if "@" in text else [1]
        one = prod(dims(text)) == 1 or not any(strides)
        if not one and (dims(text)[-1] != columns(rows) or strides[-1] != 1):
            return False
    return True


def is_same(rows: Rows) -> bool:
    own = rows["maskwise"]
    return own.cond == own.src_0 == own.src_1


def expands_cond_or_src_0(rows: Rows) -> bool:
    own = rows["maskwise"]
    counts = [prod(dims(text)) for text in (own.cond, own.src_0, own.src_1)]
    return min(counts[0], counts[1]) < max(counts)


def name_of(rows: Rows) -> str:
    own = rows["maskwise"]
    return f"{own.case} {own.dtype} {own.mask}"


def fractions(cases: Iterable[Rows]) -> list[tuple[float, str]]:
    found = []
    for rows in cases:
        share = rows["maskwise"].limit_fraction
        found.append((share if share is not None else 0.0, name_of(rows)))
    return sorted(found)


def at_least(what: str, target: float, values: list[tuple[float, str]], unit: str = "") -> Line:
    """The worst of the values, how many miss the target, and the median."""
    if not values:
        return Line(what, f"{target:g}{unit}", "-", None)
    worst, name = values[0]
    missed = sum(value < target for value, _ in values)
    middle = values[len(values) // 2][0]
    text = f"least {worst:.2f}{unit} ({name}), median {middle:.2f}{unit}"
    if missed:
        text += f"; {missed} of {len(values)} below"
    return Line(what, f"{target:g}{unit}", text, missed == 0)


def times_as_fast(cases: Iterable[Rows], impl: str) -> list[tuple[float, str]]:
    found = []
    for rows in cases:
        own, other = rows["maskwise"], rows.get(impl)
        if other and other.seconds_median is not None:
            speed = 0.0 if own.seconds_median is None else other.median() / own.median()
            found.append((speed, name_of(rows)))
    return sorted(found)


def select_lines(cases: list[Rows]) -> list[Line]:
    beyond = [rows for rows in cases if rows["limit"].bytes > core_cache_bytes()]
    large = [rows for rows in beyond if rows["limit"].bytes >= LARGE_BYTES]
    single = [rows for rows in beyond if rows["limit"].dtype == "f32"]
    peers = [("onnxruntime", 2.0), ("openvino", 1.5), ("numpy", 5.0)]
    in_l2 = [rows for rows in cases if name_of(rows) == "35 f32 random"]
    same = filter(is_same, single)
    expanded = filter(expands_cond_or_src_0, single)
    direct = filter(walks_rows, large)
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
    shares = fractions(cases)
    if not shares:
        return [Line("sweep, p5 / minimum: of the limit", "0.50 / 0.25", "-", None)]
    tail, least = shares[len(shares) // 20], shares[0]
    text = f"p5 {tail[0]:.2f}, least {least[0]:.2f} (case {least[1]}), "
    text += f"median {shares[len(shares) // 2][0]:.2f}"
    holds = tail[0] >= 0.5 and least[0] >= 0.25
    return [Line("sweep, p5 / minimum: of the limit", "0.50 / 0.25", text, holds)]


def at_most(what: str, target: float, value: float | None, unit: str) -> Line:
    if value is None:
        return Line(what, f"{target:g} {unit}", "-", None)
    return Line(what, f"{target:g} {unit}", f"{value:.3g} {unit}", value <= target)


def small_lines(cases: list[Rows]) -> list[Line]:
    native = [rows["maskwise"] for rows in cases if rows["maskwise"].case.startswith(NATIVE)]
    seconds = native[0].seconds_median if native else None
    micros = None if seconds is None else seconds * 1e6
    return [at_most("64 elements through the C ABI, native runtime", 0.2, micros, "us")]


def note_lines(notes: dict[str, Any]) -> list[Line]:
    lines = []
    for name, times in notes.items():
        if name.startswith("compile "):
            known, new = times["again"] * 1e6, times["first"] * 1e6
            lines.append(at_most(f"{name}, known descriptor", 2, known, "us"))
            lines.append(at_most(f"{name}, new descriptor", 20, new, "us"))
    memory = notes["memory"]
    extra = (memory["maskwise"] - memory["onednn"]) / (1 << 20)
    most = MEMORY_BYTES / (1 << 20)
    lines.append(at_most("peak memory over oneDNN alone, 1024x4096 f32", most, extra, "MiB"))
    return lines


def sanity_lines(every: list[Rows], notes: dict[str, Any]) -> list[Line]:
    """What would show that the benchmark itself is at fault."""
    shares = [
        (row.limit_fraction or 0.0, f"{row.case} {row.dtype} {row.mask}, {row.impl}")
        for rows in every
        for row in rows.values()
        if rows["limit"].bytes > core_cache_bytes()
    ]
    most, name = max(shares, default=(0.0, "-"))
    lines = [
        Line("nobody is faster than the limit", "1.1", f"most {most:.2f} ({name})", most <= 1.1)
    ]
    copied = ", ".join(f"{name} {rate}" for name, rate in notes["copies"].items())
    lines.append(Line("a copy of 128 MiB, GB/s", "as others", copied, True))
    return lines


def report(every: list[Rows], notes: dict[str, Any], facts: dict[str, str]) -> str:
    of: Callable[[str], list[Rows]] = lambda suite: [  # noqa: E731
        rows for rows in every if rows["limit"].suite == suite
    ]
    lines = select_lines(of("select")) + sweep_lines(of("sweep")) + small_lines(of("small"))
    lines += note_lines(notes) + sanity_lines(every, notes)
    versions = sorted(
        {
            f"{row.impl} {row.version.split(':')[0]}"
            for rows in every[:40]
            for row in rows.values()
            if row.impl != "limit"
        }
    )
    head = [f"{facts['machine']}; {facts['began']}", ", ".join(versions), ""]
    rule = ["| what | at least (times: at most) | measured | |", "|---|---|---|---|"]
    return "\n".join(["", *head, *rule, *(line.text() for line in lines)])
