#!/usr/bin/env python3
"""usage: .deps/peers/bin/python scripts/draw_picture.py

Draws the pictures of README.md, for a light and for a dark background, from the newest
docs/figures/CLASS/select.json and kept.json (scripts/take_figures.py puts them there). It needs
matplotlib, which `scripts/setup --peers` installs. `scripts/check figures` fails where a picture
was edited by hand, or drawn from other figures or by another version of this script.
"""

from __future__ import annotations

import argparse
import io
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from write_figures import PICTURES, ROOT, SELECT, Result, Table, results_of, sign

if TYPE_CHECKING:  # write_figures' tests import this file without matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTE = (
    "One dot for each Select of a real program (f32, at least 1 MB moved). Further left is faster."
)
FIRST_RATIO = 4  # the first column of the figures that is one


@dataclass(frozen=True)
class Theme:
    text: str
    faint: str
    own: str
    other: str


THEMES = {
    "light": Theme(text="#1f2328", faint="#d0d7de", own="#0b7a55", other="#6e7781"),
    "dark": Theme(text="#e6edf3", faint="#3d444d", own="#3fd19c", other="#9198a1"),
}


def ratios_of(result: Result, column: int) -> list[float]:
    return [float(row[column]) for row in result.rows if row[column] != "-"]


def implementations(result: Result) -> list[tuple[str, list[float]]]:
    """Maskwise first, then the others, the fastest first."""
    names = result.head[FIRST_RATIO:]
    found = [(name, ratios_of(result, FIRST_RATIO + i)) for i, name in enumerate(names)]
    found = [(name, ratios) for name, ratios in found if ratios]
    return sorted(found, key=lambda pair: (pair[0] != "Maskwise", statistics.median(pair[1])))


def heights(count: int) -> list[float]:
    """Spreads dots over their row, the same way each time."""
    return [0.5 * ((i * 0.618034) % 1 - 0.5) for i in range(count)]


def draw_row(axes: Axes, y: float, name: str, ratios: list[float], theme: Theme) -> None:
    own = name == "Maskwise"
    colour = theme.own if own else theme.other
    middle = statistics.median(ratios)
    dots = [y + height for height in heights(len(ratios))]
    axes.scatter(ratios, dots, s=26, color=colour, alpha=0.6, linewidths=0, zorder=2)
    axes.plot([middle, middle], [y - 0.36, y + 0.36], color=colour, linewidth=3, zorder=3)
    weight = "bold" if own else "normal"
    style = {"va": "center", "color": colour if own else theme.text, "fontweight": weight}
    axes.text(-0.015, y, name, ha="right", transform=axes.get_yaxis_transform(), **style)
    text = f"{middle:.1f}x" if middle < 10 else f"{middle:.0f}x"
    axes.text(1.015, y, text, ha="left", transform=axes.get_yaxis_transform(), **style)


def source_of(result: Result) -> str:
    machine = result.machine.partition(", load")[0]
    measured = f"{machine}; {result.command}, commit {result.commit[:9]}, {result.date}"
    return f"{measured}\n{result.versions}"


def write_words(axes: Axes, result: Result, theme: Theme) -> None:
    heading = "Time of a Select, as a multiple of the time in which the machine can move its bytes"
    notes = f"{NOTE}\n{source_of(result)}"
    at = {"transform": axes.transAxes, "color": theme.text}
    axes.text(-0.16, 1.12, heading, fontsize=11, **at)
    axes.text(1.015, 1.01, "median", fontsize=9, **at)
    axes.text(-0.16, -0.13, notes, fontsize=8, linespacing=1.5, va="top", **at)
    above = {"transform": axes.get_xaxis_transform(), "ha": "center", "fontsize": 9}
    axes.text(1, 1.01, "the limit", color=theme.text, **above)


def new_figure(height: float) -> Figure:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "maskwise", "svg.fonttype": "path"})
    return Figure(figsize=(8.6, height))


def draw_select(result: Result, theme: Theme) -> Figure:
    rows = implementations(result)
    figure = new_figure(0.46 * len(rows) + 1.2)
    axes = figure.subplots()
    for y, (name, ratios) in enumerate(reversed(rows)):
        draw_row(axes, y, name, ratios, theme)
    axes.axvline(1, color=theme.text, linewidth=1.2, zorder=1)
    axes.set_xscale("log")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_yticks([])
    axes.grid(axis="x", color=theme.faint, linewidth=0.8, zorder=0)
    write_words(axes, result, theme)
    return figure


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Upwards, where two are nearer than that."""
    placed: dict[str, float] = {}
    for name, y in sorted(heights.items(), key=lambda pair: pair[1]):
        placed[name] = max([y, *(below + gap for below in placed.values())])
    return placed


def draw_kept(result: Result, theme: Theme) -> Figure:
    """A line for each implementation, named at its end."""
    figure = new_figure(3.6)
    axes = figure.subplots()
    percents = [float(row[0]) for row in result.rows]
    ends: dict[str, float] = {}
    for column, name in enumerate(result.head[1:], 1):
        points = [
            (percent, float(row[column]))
            for percent, row in zip(percents, result.rows, strict=True)
            if row[column] != "-"
        ]
        own = name == "Maskwise"
        colour, width = (theme.own, 2.5) if own else (theme.other, 1.5)
        style = {"marker": "o", "markersize": 4, "clip_on": False}
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=width, **style)
        ends[name] = points[-1][1]
    for name, y in spread(ends, gap=10).items():
        own = name == "Maskwise"
        weight, colour = ("bold", theme.own) if own else ("normal", theme.text)
        axes.text(102, y, name, color=colour, fontweight=weight, va="center")
    axes.tick_params(axis="x", pad=6)
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} ms")
    axes.grid(color=theme.faint, linewidth=0.8, zorder=0)
    at = {"transform": axes.transAxes, "color": theme.text}
    axes.text(-0.08, 1.06, "Time of attention, by how much of it the mask keeps", fontsize=11, **at)
    axes.text(-0.08, -0.13, source_of(result), fontsize=8, linespacing=1.5, va="top", **at)
    return figure


def draw(result: Result, table: Table, theme: Theme) -> str:
    figure = draw_select(result, theme) if table is SELECT else draw_kept(result, theme)
    for axes in figure.axes:
        axes.patch.set_visible(False)
        axes.tick_params(colors=theme.text, which="both", length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    text = io.StringIO()
    facts = {"Date": None, "Creator": None}
    figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata=facts)
    return text.getvalue()


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path, (table, theme) in PICTURES.items():
        [result] = results_of(table, ROOT).values()
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(sign(draw(result, table, THEMES[theme]), table, ROOT))
        print(f"drawn: {path}")


if __name__ == "__main__":
    main()
