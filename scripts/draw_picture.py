#!/usr/bin/env python3
"""usage: .deps/peers/bin/python scripts/draw_picture.py

Draws the pictures of README.md, for a light and for a dark background, from the newest
docs/figures/CLASS/NAME.json (scripts/take_figures.py writes it). Needs matplotlib, which
`scripts/setup --peers` installs. `scripts/check figures` fails if a picture was edited by hand,
drawn from other results, or drawn by another version of this script.
"""

from __future__ import annotations

import argparse
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from write_figures import PICTURES, ROOT, Result, results_of, sign

if TYPE_CHECKING:  # because tests import this file without matplotlib
    from matplotlib.axes import Axes

SMALL: dict[str, object] = {"fontsize": 8, "linespacing": 1.5, "va": "top"}


def is_own(name: str) -> bool:
    return name.startswith("Maskwise")


@dataclass(frozen=True)
class Theme:
    text: str
    faint: str
    own: str
    other: str

    def name_style(self, name: str) -> dict[str, str]:
        weight, colour = ("bold", self.own) if is_own(name) else ("normal", self.text)
        return {"color": colour, "fontweight": weight, "va": "center"}

    def mark(self, name: str) -> str:
        return self.own if is_own(name) else self.other


THEMES = {
    "light": Theme(text="#1f2328", faint="#d0d7de", own="#0b7a55", other="#6e7781"),
    "dark": Theme(text="#e6edf3", faint="#3d444d", own="#3fd19c", other="#9198a1"),
}


def column_of(result: Result, column: int) -> dict[str, float]:
    """A column's numbers by the first cells of their rows."""
    return {row[0]: float(row[column]) for row in result.rows if row[column] != "-"}


def source_of(result: Result) -> str:
    machine = result.machine.partition(", load")[0]
    measured = f"{machine}; {result.command}, commit {result.commit[:9]}, {result.date}"
    return f"{measured}\n{result.versions}"


def write(axes: Axes, theme: Theme, x: float, y: float, text: str, **style: object) -> None:
    axes.text(x, y, text, **{"transform": axes.transAxes, "color": theme.text, **style})


def new_axes(height: float) -> Axes:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "maskwise", "svg.fonttype": "none"})
    return Figure(figsize=(8.6, height)).subplots()


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Moves heights upwards until they are at least `gap` apart."""
    placed: dict[str, float] = {}
    for name, y in sorted(heights.items(), key=lambda pair: pair[1]):
        placed[name] = max([y, *(below + gap for below in placed.values())])
    return placed


def draw_lines(axes: Axes, result: Result, theme: Theme) -> dict[str, float]:
    """Draws a line for each implementation; returns the height of each line's end."""
    ends: dict[str, float] = {}
    for column, name in enumerate(result.head[1:], 1):
        points = [(float(x), y) for x, y in column_of(result, column).items()]
        style = {"marker": "o", "markersize": 4, "clip_on": False, "color": theme.mark(name)}
        width = 2.5 if is_own(name) else 1.5
        axes.plot(*zip(*points, strict=True), linewidth=width, **style)
        ends[name] = points[-1][1]
    axes.tick_params(axis="x", pad=6)
    axes.yaxis.set_major_formatter("{x:g} ms")
    axes.grid(color=theme.faint, linewidth=0.8, zorder=0)
    write(axes, theme, -0.08, -0.13, source_of(result), **SMALL)
    return ends


def draw_kept(result: Result, theme: Theme) -> Axes:
    axes = new_axes(3.6)
    ends = draw_lines(axes, result, theme)
    for name, y in spread(ends, gap=10).items():
        axes.text(102, y, name, **theme.name_style(name))
    axes.set(xlim=(0, 100), ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:g} %")
    title = "Time of attention, by how much of it the mask keeps"
    write(axes, theme, -0.08, 1.06, title, fontsize=11)
    return axes


def draw(result: Result, theme: Theme) -> str:
    axes = draw_kept(result, theme)
    axes.patch.set_visible(False)
    axes.tick_params(colors=theme.text, which="both", length=0)
    axes.spines[:].set_visible(False)
    text = io.StringIO()
    facts = {"Date": None, "Creator": None}
    axes.figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata=facts)
    return text.getvalue()


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path, (table, theme) in PICTURES.items():
        [result] = results_of(table, ROOT).values()
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(sign(draw(result, THEMES[theme]), table, ROOT))
        print(f"drawn: {path}")


if __name__ == "__main__":
    main()
