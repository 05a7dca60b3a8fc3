"""Measures the plugin's overhead for a graph without Select, from graph_create to get_partitions.

Runs the client in turns with oneDNN alone and with the plugin; the order changes each turn. The
median overhead must be below 3 % or 2.5 microseconds, whichever is more. Turns continue until the
median's confidence interval excludes the bound. If 60 turns do not suffice, the test is skipped.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ALLOWED_SHARE = 0.03
ALLOWED_NANOSECONDS = 2500.0  # measured for two operators on a 2.4 GHz Zen 3: 1500 to 2100
MILLISECONDS = "150"
MOST_TURNS = 60
# probability that the sign test errs; ten agreeing turns suffice
DOUBT = 0.002
SKIPPED = 77


@dataclass
class Turn:
    alone: float
    plugin: float

    @property
    def added(self) -> float:
        return self.plugin - self.alone

    @property
    def bound(self) -> float:
        return max(ALLOWED_NANOSECONDS, ALLOWED_SHARE * self.alone)


def verdict(turns: list[Turn]) -> bool | None:
    """Whether the median is within the bound, by the sign test; None if undecided."""
    above = sum(turn.added > turn.bound for turn in turns)
    fewer = min(above, len(turns) - above)
    chance = sum(math.comb(len(turns), k) for k in range(fewer + 1)) / 2 ** len(turns)
    return above == fewer if 2 * chance < DOUBT else None


def judge(take_turn: Callable[[int], Turn]) -> tuple[bool | None, list[Turn]]:
    turns: list[Turn] = []
    decided = None
    while decided is None and len(turns) < MOST_TURNS:
        turns.append(take_turn(len(turns)))
        decided = verdict(turns)
    return decided, turns


def nanoseconds(command: list[str], ops: int) -> float:
    done = subprocess.run(
        [*command, str(ops), MILLISECONDS], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def compare(alone: list[str], plugin: list[str], ops: int) -> bool | None:
    def take_turn(number: int) -> Turn:
        if number % 2 == 0:
            return Turn(nanoseconds(alone, ops), nanoseconds(plugin, ops))
        after = nanoseconds(plugin, ops)
        return Turn(nanoseconds(alone, ops), after)

    decided, turns = judge(take_turn)
    before = statistics.median(turn.alone for turn in turns)
    added = statistics.median(turn.added for turn in turns)
    bound = statistics.median(turn.bound for turn in turns)
    word = {True: "within", False: "above", None: "too noisy to compare with"}[decided]
    print(
        f"{ops} operators: {before:.0f} ns alone, {added:+.0f} ns with the plugin "
        f"({added / before:+.1%}), {len(turns)} turns: {word} the bound, {bound:.0f} ns"
    )
    return decided


def results(arguments: argparse.Namespace) -> Iterator[bool | None]:
    tail = [arguments.prefix, "--", arguments.client]
    for ops in (2, 20):
        yield compare(
            [arguments.runner, *tail], [arguments.runner, "--preload", arguments.plugin, *tail], ops
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("runner", "prefix", "client", "plugin"):
        parser.add_argument(f"--{name}", required=True)
    decided = list(results(parser.parse_args()))
    if False in decided:
        return 1
    return SKIPPED if None in decided else 0


if __name__ == "__main__":
    sys.exit(main())
