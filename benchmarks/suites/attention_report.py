"""What the attention suite prints and draws."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from attention_measured import Measured

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Times as fast as oneDNN alone, to be reached on lane 3.13. Everything else: never slower.
TIMES = {
    "MHA-GPT-inf-fp32-bs1": 4.0,
    "MHA-distill_bert-inf-fp32-bs1": 15.0,
    "sdpa-plain-implicit-causal-mask-fp32-bs1": 6.0,
    "gqa-plain-implicit-causal-mask-fp32-bs1": 6.0,
    "matmul_select": 6.0,
    "MHA-GPT-inf-int8-bs1": 4.0,
    "MHA-distill_bert-inf-int8-bs1": 10.0,
}
OF_CEILING = 0.8
OF_LIMIT = 0.7  # of the middle alone, whose ceiling is one read and one write
NOISE = 0.97  # "never slower" within what two measurements of the same differ
PARTS = {
    "before": ("oneDNN's part before", "#c1440e"),
    "after": ("oneDNN's part after", "#e59866"),
    "rows at the limit": ("Maskwise's rows, as fast as memory", "#0b6e4f"),
    "rest": ("the rest of Maskwise's time", "#9fd3c0"),
}


def header() -> str:
    return (
        f"{'case':<48}{'oneDNN ms':>11}{'Maskwise ms':>12}{'times':>8}{'ceiling ms':>12}"
        f"{'of it':>7}{'before':>9}{'after':>9}{'rows':>9}  what Maskwise runs"
    )


def number(value: float | None, width: int, digits: int = 3) -> str:
    return f"{value:>{width}.{digits}f}" if value is not None else f"{'-':>{width}}"


def line(measured: Measured) -> str:
    if measured.state:
        return f"{measured.case:<48}  {measured.state}"
    text = f"{measured.case:<48}{number(measured.median('onednn'), 11)}"
    text += f"{number(measured.median('maskwise'), 12)}{number(measured.times_faster(), 8, 2)}"
    text += f"{number(measured.ceiling(), 12)}{number(measured.of_ceiling(), 7, 2)}"
    for part in ("before", "after", "rows at the limit"):
        text += number(measured.median(part), 9)
    return f"{text}  {measured.claim or 'nothing'}"


def verdict(measured: Measured) -> str:
    times = measured.times_faster()
    if times is None:
        return "not measured"
    wanted = TIMES.get(measured.case, NOISE) if measured.lane == "3.13" else NOISE
    return "holds" if times >= wanted else "MISSED"


def targets(every: list[Measured]) -> str:
    rows = [
        "",
        "| case | lane | at least | times faster | | of its ceiling |",
        "|---|---|---|---|---|---|",
    ]
    for measured in every:
        times, share = measured.times_faster(), measured.of_ceiling()
        if times is None:
            continue
        wanted = TIMES.get(measured.case) if measured.lane == "3.13" else None
        target = f"{wanted:g}" if wanted else "1"
        shown = "-" if share is None else f"{share:.2f}"
        least = OF_LIMIT if measured.case.startswith("middle") else OF_CEILING
        if share is not None and share < least:
            shown += f" (to reach: {least})"
        rows.append(
            f"| {measured.case} | {measured.lane} | {target} | {times:.2f} | {verdict(measured)} "
            f"| {shown} |"
        )
    return "\n".join(rows)


def shares(measured: Measured) -> dict[str, float]:
    """The parts of Maskwise's time, as shares of oneDNN's alone."""
    alone, own = measured.median("onednn"), measured.median("maskwise")
    assert alone and own
    parts = {name: measured.median(name) or 0.0 for name in PARTS if name != "rest"}
    parts["rest"] = max(0.0, own - sum(parts.values()))
    return {name: milliseconds / alone for name, milliseconds in parts.items()}


def draw(every: list[Measured], facts: dict[str, str], path: Path) -> None:
    """A bar a case: where Maskwise's time goes, as a share of the time of oneDNN alone."""
    drawn = [measured for measured in every if measured.claim and measured.times_faster()]
    if not drawn:
        return
    figure, axes = plt.subplots(figsize=(9, 0.32 * len(drawn) + 1.4))
    for y, measured in enumerate(reversed(drawn)):
        left = 0.0
        for name, share in shares(measured).items():
            axes.barh(y, share, left=left, color=PARTS[name][1], height=0.7)
            left += share
        axes.text(left + 0.01, y, f"{measured.times_faster():.1f}x", va="center", fontsize=8)
    labels = [f"{measured.case}, {measured.lane}" for measured in reversed(drawn)]
    axes.set_yticks(range(len(drawn)), labels, fontsize=8)
    axes.axvline(1, color="black", linewidth=1.5)
    axes.set_xlabel("time, as a share of oneDNN alone (the black line)")
    axes.set_title("Attention: where Maskwise's time goes", loc="left")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for _, colour in PARTS.values()]
    names = [text for text, _ in PARTS.values()]
    axes.legend(handles, names, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    text = f"{facts['machine']}; {facts['began']}"
    figure.text(0.01, -0.02, text, fontsize=7, color="#666666")
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
