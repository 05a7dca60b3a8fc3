"""The pictures: which share of the limit, how many times faster than the others, small calls."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cases import shape_table
from results import NAMES, Rows, with_own_masks

GREEN, BLUE, RED, GREY = "#0b6e4f", "#3b6fb6", "#c1440e", "#555555"
COLOURS = {
    "maskwise": GREEN,
    "onednn": RED,
    "onnxruntime": BLUE,
    "openvino": "#7b4fa3",
    "numpy": "#b8860b",
    "numexpr": "#8a8a8a",
}
WAITING = {"passive": "#e39b6d", "active": "#7a2804"}  # oneDNN on OpenMP, by its wait policy
TYPES = {"f32": GREEN, "bf16": BLUE, "f16": RED}
MASKS = {"random": "o", "causal": "^", "padding": "s", "true": "*", "runs": "P"}
OTHER_MASK = "X"
LEVELS = ((1.0, "the limit"), (0.5, "to reach: 95 % of shapes"), (0.25, "to reach: every shape"))


def new_axes(height: float, **settings: Any) -> Any:
    """`settings` as Axes.set takes them. Matplotlib is loaded here: not all that import this have
    it."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    rcParams.update({"axes.titlelocation": "left", "legend.frameon": False})
    axes = Figure(figsize=(9, height)).subplots()
    axes.set(**settings)
    return axes


def add_legend(axes: Any, entries: Iterable[tuple[str, str, str]] = ()) -> None:
    """Of what was drawn with a label, and of marker, colour and name of each entry."""
    for marker, colour, name in entries:
        axes.plot([], [], marker, color=colour, label=name)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))


def save(axes: Any, facts: dict[str, str], path: Path) -> None:
    note = f"{facts['machine']}; {facts['began']}"
    at = {"xycoords": "axes fraction", "xytext": (0, -42), "textcoords": "offset points"}
    axes.annotate(note, (0, 0), **at, va="top", fontsize=7, color="#666666")
    axes.figure.savefig(path, dpi=130, bbox_inches="tight")


def series(cases: list[Rows]) -> list[tuple[str, str, str]]:
    """Implementation, colour and name of all that some case has, Maskwise first."""
    impls = dict.fromkeys(impl for rows in cases for impl in rows if impl != "limit")
    known = [impl for impl in COLOURS if impl in impls]
    openmp = [impl for impl in impls if impl not in COLOURS]
    return [
        *((impl, COLOURS[impl], NAMES[impl]) for impl in known),
        *((impl, WAITING[impl.split()[-1]], f"oneDNN alone,{impl[6:]}") for impl in openmp),
    ]


def draw_all(every: list[Rows], facts: dict[str, str], folder: Path) -> None:
    select, small, sweep = (
        [rows for rows in every if rows["limit"].suite == suite]
        for suite in ("select", "small", "sweep")
    )
    for draw, cases, name in (
        (draw_select, with_own_masks(select), "select"),
        (draw_types, select, "select-types-and-masks"),
        (draw_small, small, "small"),
        (draw_sweep, sweep, "sweep"),
    ):
        if cases:
            save(draw(cases), facts, folder / f"{name}.png")


def operand_text(text: str) -> str:
    shape, _, strides = text.partition("@")
    if shape == "-" or (strides and not any(int(stride) for stride in strides.split("x"))):
        return "scalar"
    return shape + ("ᵀ" if strides else "")


def label(rows: Rows, what: dict[str, str]) -> str:
    row = rows["limit"]
    operands = " | ".join(operand_text(text) for text in (row.cond, row.src_0, row.src_1))
    return f"{what.get(row.case, row.case)}:  {operands}"


def draw_select(cases: list[Rows]) -> Any:
    """A line a shape, a dot an implementation: how many times as long as the limit."""
    cases = sorted(cases, key=lambda rows: rows["limit"].bytes)
    axes = new_axes(
        0.27 * len(cases) + 1.2,
        xscale="log",
        xlabel="time, as a multiple of the time in which the machine can move the bytes",
        title="Select, f32: how many times as long as the memory needs"
        "\ncond | src_0 | src_1; the black line is the limit; largest first",
    )
    own, other = {"markersize": 8, "zorder": 3}, {"markersize": 6, "zorder": 2}
    for y, rows in enumerate(cases):
        axes.axhline(y, color="#eeeeee", linewidth=1, zorder=0)
        for impl, colour, name in series(cases):
            row, big = rows.get(impl), impl == "maskwise"
            if row and row.seconds_median is not None:
                times = row.seconds_median / rows["limit"].median()
                axes.plot(times, y, "D" if big else "o", color=colour, **(own if big else other))
            elif row and row.version.endswith("wrong answer"):
                axes.text(1.05, y, f"{name}: wrong answer", fontsize=7, color=colour)
    axes.axvline(1, color="black", linewidth=1.5)
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.set(xlim=(0.7, None), ylim=(-0.8, len(cases) - 0.2))
    what = {case.name: case.what for case in shape_table()}
    axes.set_yticks(range(len(cases)), [label(rows, what) for rows in cases], fontsize=8)
    dots = [("D" if impl == "maskwise" else "o", dot, name) for impl, dot, name in series(cases)]
    add_legend(axes, dots)
    return axes


def draw_types(cases: list[Rows]) -> Any:
    """Maskwise's share of the limit by size, for every type and mask."""
    axes = new_axes(
        5,
        xscale="log",
        xlabel="megabytes that the case must move",
        ylabel="share of the limit that Maskwise reaches",
        title="Every shape, type and mask: 1 is as fast as the memory\n"
        "(on the left, cases of a few kilobytes: there the call itself is the time)",
    )
    for row in (rows["maskwise"] for rows in cases):
        if row.limit_fraction is not None:
            style = {"color": TYPES[row.dtype], "marker": MASKS.get(row.mask, OTHER_MASK)}
            axes.plot(row.bytes / 1e6, row.limit_fraction, **style, markersize=6, alpha=0.75)
    axes.axhline(1, color="black", linewidth=1.5)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(0, 1.2)
    masks = [(marker, GREY, mask) for mask, marker in MASKS.items()]
    dots = [("o", colour, dtype) for dtype, colour in TYPES.items()]
    add_legend(axes, [*dots, *masks, (OTHER_MASK, GREY, "other")])
    return axes


def draw_small(cases: list[Rows]) -> Any:
    axes = new_axes(
        5,
        yscale="log",
        xlabel="elements (f32, all operands of the same shape)",
        ylabel="microseconds a call",
        title="Small Selects: what a call costs",
    )
    plain = [rows for rows in cases if rows["limit"].case.isdigit()]
    for impl, colour, name in series(plain):
        of_impl = [rows[impl] for rows in plain if impl in rows]
        measured = [row for row in of_impl if row.seconds_median is not None]
        points = [(int(row.case), row.median() * 1e6) for row in measured]
        width = 2.5 if impl == "maskwise" else 1.5
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name, linewidth=width)
    for row in (rows["maskwise"] for rows in cases if "maskwise" in rows):
        if not row.case.isdigit() and row.seconds_median is not None:
            name = f"Maskwise, {row.case.replace('64 on', 'oneDNN')} (native runtime)"
            axes.plot(64, row.median() * 1e6, "D", color=GREEN, label=name)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace(",", " "))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(axis="y", color="#eeeeee")
    add_legend(axes)
    return axes


def draw_sweep(cases: list[Rows]) -> Any:
    shares = sorted(rows["maskwise"].limit_fraction or 0.0 for rows in cases)
    tail, middle = shares[len(shares) // 20], shares[len(shares) // 2]
    axes = new_axes(
        4.5,
        xlim=(0, 100),
        ylim=(0, 1.2),
        xlabel="per cent of the shapes, slowest first",
        ylabel="share of the limit",
        title=f"{len(shares)} random shapes and layouts: is there a cliff?\n"
        f"least {shares[0]:.2f}, 5 % below {tail:.2f}, half below {middle:.2f}",
    )
    percent = [100 * (i + 0.5) / len(shares) for i in range(len(shares))]
    axes.fill_between(percent, shares, step="mid", color=GREEN, alpha=0.85)
    for level, name in LEVELS:
        style, width = ("-", 1.5) if level == 1 else ("--", 0.8)
        axes.axhline(level, color="black", linewidth=width, linestyle=style)
        axes.text(100.5, level, name, va="center", fontsize=8)
    return axes
