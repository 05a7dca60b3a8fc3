"""The pictures: which share of the limit, how many times faster than the others, small calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from cases import shape_table
from results import NAMES, Row

Rows = dict[str, Row]
COLOURS = {
    "maskwise": "#0b6e4f",
    "onednn": "#c1440e",
    "onnxruntime": "#3b6fb6",
    "openvino": "#7b4fa3",
    "numpy": "#b8860b",
    "numexpr": "#8a8a8a",
}
WAITING = {"passive": "#e39b6d", "active": "#7a2804"}  # oneDNN on OpenMP, by its wait policy


def series(cases: list[Rows]) -> list[tuple[str, str, str]]:
    """Implementation, colour and name of all that some case has, Maskwise first."""
    found = dict.fromkeys(impl for rows in cases for impl in rows if impl != "limit")
    known = [impl for impl in COLOURS if impl in found]
    openmp = [impl for impl in found if impl not in COLOURS]
    return [
        *((impl, COLOURS[impl], NAMES[impl]) for impl in known),
        *((impl, WAITING[impl.split()[-1]], f"oneDNN alone,{impl[6:]}") for impl in openmp),
    ]


def draw_all(every: list[Rows], facts: dict[str, str], folder: Path) -> None:
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    of = {
        suite: [rows for rows in every if rows["limit"].suite == suite]
        for suite in ("select", "small", "sweep")
    }
    own = [rows for rows in of["select"] if is_own_mask(rows, of["select"])]
    if own:
        draw_select(own, facts, folder / "select.png")
    if of["select"]:
        draw_types(of["select"], facts, folder / "select-types-and-masks.png")
    if of["small"]:
        draw_small(of["small"], facts, folder / "small.png")
    if of["sweep"]:
        draw_sweep(of["sweep"], facts, folder / "sweep.png")


def is_own_mask(rows: Rows, every: list[Rows]) -> bool:
    """f32, and the mask that the row of the table has: the first one measured."""
    row = rows["limit"]
    first = next(other["limit"] for other in every if other["limit"].case == row.case)
    return row.dtype == "f32" and row.mask == first.mask


def finish(figure: Any, axes: Any, facts: dict[str, str], path: Path) -> None:
    axes.annotate(
        f"{facts['machine']}; {facts['began']}",
        (0, 0),
        xytext=(0, -42),
        xycoords="axes fraction",
        textcoords="offset points",
        va="top",
        fontsize=7,
        color="#666666",
    )
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


def operand_text(text: str) -> str:
    shape, _, strides = text.partition("@")
    if shape == "-" or (strides and not any(int(stride) for stride in strides.split("x"))):
        return "scalar"
    return shape + ("ᵀ" if strides else "")


def label(rows: Rows, what: dict[str, str]) -> str:
    row = rows["limit"]
    operands = " | ".join(operand_text(text) for text in (row.cond, row.src_0, row.src_1))
    return f"{what.get(row.case, row.case)}:  {operands}"


def draw_select(cases: list[Rows], facts: dict[str, str], path: Path) -> None:
    """A line a shape, a dot an implementation: how many times as long as the limit."""
    what = {case.name: case.what for case in shape_table()}
    cases = sorted(cases, key=lambda rows: -rows["limit"].bytes)
    figure, axes = plt.subplots(figsize=(9, 0.27 * len(cases) + 1.2))
    for y, rows in enumerate(reversed(cases)):
        limit = rows["limit"].median()
        axes.axhline(y, color="#eeeeee", linewidth=1, zorder=0)
        for impl, colour, name in series(cases):
            row = rows.get(impl)
            if row and row.seconds_median is not None:
                big = impl == "maskwise"
                axes.plot(
                    row.seconds_median / limit,
                    y,
                    "D" if big else "o",
                    color=colour,
                    markersize=8 if big else 6,
                    zorder=3 if big else 2,
                )
            elif row and row.version.endswith("wrong answer"):
                axes.text(1.05, y, f"{name}: wrong answer", fontsize=7, color=colour)
    axes.axvline(1, color="black", linewidth=1.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_xlim(0.7, None)
    axes.set_ylim(-0.8, len(cases) - 0.2)
    axes.set_yticks(range(len(cases)), [label(rows, what) for rows in reversed(cases)], fontsize=8)
    axes.set_xlabel("time, as a multiple of the time in which the machine can move the bytes")
    axes.set_title(
        "Select, f32: how many times as long as the memory needs"
        "\ncond | src_0 | src_1; the black line is the limit; largest first",
        loc="left",
    )
    handles = [
        plt.Line2D(
            [],
            [],
            marker="D" if impl == "maskwise" else "o",
            linestyle="",
            color=colour,
            label=name,
        )
        for impl, colour, name in series(cases)
    ]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    finish(figure, axes, facts, path)


def draw_types(cases: list[Rows], facts: dict[str, str], path: Path) -> None:
    """Maskwise's share of the limit by size, for every type and mask."""
    figure, axes = plt.subplots(figsize=(9, 5))
    colours = {"f32": "#0b6e4f", "bf16": "#3b6fb6", "f16": "#c1440e"}
    markers = {"random": "o", "causal": "^", "padding": "s", "true": "*", "runs": "P"}
    for rows in cases:
        row = rows["maskwise"]
        if row.limit_fraction is not None:
            axes.plot(
                row.bytes / 1e6,
                row.limit_fraction,
                markers.get(row.mask, "X"),
                color=colours[row.dtype],
                markersize=6,
                alpha=0.75,
            )
    axes.axhline(1, color="black", linewidth=1.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(0, 1.2)
    axes.set_xlabel("megabytes that the case must move")
    axes.set_ylabel("share of the limit that Maskwise reaches")
    axes.set_title(
        "Every shape, type and mask: 1 is as fast as the memory\n"
        "(on the left, cases of a few kilobytes: there the call itself is the time)",
        loc="left",
    )
    handles = [
        plt.Line2D([], [], marker="o", linestyle="", color=colour, label=dtype)
        for dtype, colour in colours.items()
    ]
    handles += [
        plt.Line2D([], [], marker=marker, linestyle="", color="#555555", label=mask)
        for mask, marker in markers.items()
    ]
    handles.append(plt.Line2D([], [], marker="X", linestyle="", color="#555555", label="other"))
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    finish(figure, axes, facts, path)


def draw_small(cases: list[Rows], facts: dict[str, str], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(9, 5))
    plain = [rows for rows in cases if rows["limit"].case.isdigit()]
    for impl, colour, name in series(plain):
        points = [
            (int(rows[impl].case), rows[impl].median() * 1e6)
            for rows in plain
            if impl in rows and rows[impl].seconds_median is not None
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                "o-",
                color=colour,
                label=name,
                linewidth=2.5 if impl == "maskwise" else 1.5,
            )
    for rows in cases:
        row = rows.get("maskwise")
        if row and not row.case.isdigit() and row.seconds_median is not None:
            axes.plot(
                64,
                row.median() * 1e6,
                "D",
                color=COLOURS["maskwise"],
                label=f"Maskwise, {row.case.replace('64 on', 'oneDNN')} (native runtime)",
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace(",", " "))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("elements (f32, all operands of the same shape)")
    axes.set_ylabel("microseconds a call")
    axes.set_title("Small Selects: what a call costs", loc="left")
    axes.grid(axis="y", color="#eeeeee")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    finish(figure, axes, facts, path)


def draw_sweep(cases: list[Rows], facts: dict[str, str], path: Path) -> None:
    shares = sorted(rows["maskwise"].limit_fraction or 0.0 for rows in cases)
    figure, axes = plt.subplots(figsize=(9, 4.5))
    percent = [100 * (i + 0.5) / len(shares) for i in range(len(shares))]
    axes.fill_between(percent, shares, step="mid", color="#0b6e4f", alpha=0.85)
    for level, name in (
        (1.0, "the limit"),
        (0.5, "to reach: 95 % of shapes"),
        (0.25, "to reach: every shape"),
    ):
        axes.axhline(
            level,
            color="black",
            linewidth=1.5 if level == 1 else 0.8,
            linestyle="-" if level == 1 else "--",
        )
        axes.text(100.5, level, name, va="center", fontsize=8)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1.2)
    axes.set_xlabel("per cent of the shapes, slowest first")
    axes.set_ylabel("share of the limit")
    middle = shares[len(shares) // 2]
    axes.set_title(
        f"{len(shares)} random shapes and layouts: is there a cliff?\n"
        f"least {shares[0]:.2f}, 5 % below {shares[len(shares) // 20]:.2f}, "
        f"half below {middle:.2f}",
        loc="left",
    )
    finish(figure, axes, facts, path)
