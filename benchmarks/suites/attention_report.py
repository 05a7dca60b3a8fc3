"""The output of the attention suite."""

from collections import Counter

from attention_measured import CEILING, Measured, interval

# Required speed relative to oneDNN alone with oneDNN 3.13. All other cases and versions require 1.
TIMES = {
    "MHA-GPT-inf-fp32-bs1": 4.0,
    "MHA-distill_bert-inf-fp32-bs1": 15.0,
    "sdpa-plain-implicit-causal-mask-fp32-bs1": 6.0,
    "gqa-plain-implicit-causal-mask-fp32-bs1": 6.0,
    "matmul_select": 6.0,
    "MHA-GPT-inf-int8-bs1": 4.0,
    "MHA-distill_bert-inf-int8-bs1": 10.0,
}
OF_CEILING = 0.8  # minimum of the ceiling's time / Maskwise's time
OF_LIMIT = 0.7  # minimum for cases `middle ...`: their ceiling is only a copy
HEAD = ["case", "oneDNN ms", "Maskwise ms", "times", "95 %", "target", "", "ceiling ms"]
HEAD += ["share", "before", "after", "copy", "what Maskwise runs"]


def figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def share_text(measured: Measured) -> str:
    share = measured.of_ceiling()
    least = OF_LIMIT if measured.case.startswith("middle") else OF_CEILING
    if share is None:
        return "-"
    return f"{share:.2f}" + (f" (target: {least})" if share < least else "")


def case_row(measured: Measured) -> list[str]:
    if not measured.ratios:
        return [measured.case, *["-"] * (len(HEAD) - 2), measured.state or "not measured"]
    times = [measured.median("onednn"), measured.median("maskwise"), measured.times_faster()]
    low, high = interval(measured.ratios)
    judged = [f"{low:.2f} to {high:.2f}", f"{wanted_times(measured) or 1:g}", verdict(measured)]
    parts = [figure(measured.ceiling()), share_text(measured)]
    parts += [figure(measured.median(part)) for part in CEILING]
    runs = f"{measured.claim or 'nothing'}{again(measured)}"
    return [measured.case, *map(figure, times), *judged, *parts, runs]


def wanted_times(measured: Measured) -> float | None:
    return TIMES.get(measured.case) if measured.lane == "3.13" else None


def verdict(measured: Measured) -> str:
    times = measured.times_faster()
    if times is None:
        return "not measured"
    wanted = wanted_times(measured)
    # Without an entry in TIMES, a case is MISSED only if its interval ends below 1 and each pair of
    # new processes has a ratio below 1.
    reached = times if wanted else max([interval(measured.ratios)[1], *measured.again])
    return "holds" if reached >= (wanted or 1.0) else "MISSED"


def counts(all_measured: list[Measured]) -> str:
    """Returns a line with the counts of verdicts and states."""
    held = sum(verdict(measured) == "holds" for measured in all_measured)
    judged = sum(measured.times_faster() is not None for measured in all_measured)
    states = Counter(measured.state.split(":")[0] for measured in all_measured if measured.state)
    others = "".join(f", {count} {state}" for state, count in states.items())
    return f"{held} of {judged} targets hold{others}; {len(all_measured)} cases in all"


def again(measured: Measured) -> str:
    ratios = ", ".join(f"{ratio:.2f}" for ratio in measured.again)
    return f", {ratios} with fresh processes" if ratios else ""


def failures(all_measured: list[Measured], with_targets: bool) -> list[str]:
    """Returns a line for each wrong result and, if requested, for each missed target."""
    lines = []
    for measured in all_measured:
        name = f"{measured.case} on {measured.lane}"
        if measured.state.startswith("wrong"):
            lines.append(f"{name}: {measured.state}")
        elif with_targets and verdict(measured) == "MISSED":
            low, high = interval(measured.ratios)
            lines.append(
                f"missed: {name}: {measured.times_faster():.2f} times as fast as oneDNN alone "
                f"({low:.2f} to {high:.2f}){again(measured)}, "
                f"at least {wanted_times(measured) or 1:g} wanted"
            )
    return lines
