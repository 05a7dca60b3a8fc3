"""Runs the transcript client with oneDNN alone and with the plugin, and compares the answers.

Every difference must be in the file --differences. Every entry whose versions and condition apply
must occur, unless the entry is optional. The client's scenario "facts" prints oneDNN's version and
the values of the conditions.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ABSENT = "-"
ANYTHING = "*"
DIES = "dies"
# lanes_agree and merge_contract check the plugin's answers in these scenarios.
MAY_ANSWER_ANYTHING = ("compile/", "graph/")
Key = tuple[str, str, int]  # scenario, call, number of earlier equal calls


@dataclass
class Rule:
    """One line of --differences: shell patterns, and the conditions under which they apply."""

    where: str
    scenario: str
    call: str
    alone: str
    plugin: str
    optional: bool  # depends on the machine: need not occur
    used: bool = field(default=False)

    def fits(self, key: Key, alone: str, plugin: str) -> bool:
        pairs = ((key[0], self.scenario), (key[1], self.call))
        values = ((alone, self.alone), (plugin, self.plugin))
        return all(fnmatch.fnmatchcase(text, pattern) for text, pattern in (*pairs, *values))


def holds(where: str, facts: dict[str, int]) -> bool:
    """Whether a text like "3.7+ if no bf16" or "3.7-3.13" fits oneDNN's version and the facts."""
    versions, _, condition = where.partition(" if ")
    first, is_range, last = versions.removesuffix("+").replace("3.", "").partition("-")
    newest = math.inf if versions.endswith("+") else int(last if is_range else first)
    if not int(first) <= facts["minor"] <= newest:
        return False
    words = condition.split()
    return not words or facts[words[-1]] == (words[0] != "no")


def alternatives(cell: str) -> list[str]:
    """Expands "a{b,c}" to "ab" and "ac"."""
    before, _, rest = cell.partition("{")
    inside, _, after = rest.partition("}")
    return [before + each + after for each in inside.split(",")]


def rules_of(where: str, cells: list[str]) -> Iterator[Rule]:
    condition, optional = where.removesuffix("?").strip(), where.endswith("?")
    for scenario, call, alone, plugin in itertools.product(*map(alternatives, cells)):
        if alone == DIES:
            killed = "process ended by a signal"
            yield Rule(condition, scenario, "end", killed, ABSENT, optional)
        yield Rule(condition, scenario, call, ABSENT if alone == DIES else alone, plugin, optional)


def read_rules(path: Path, facts: dict[str, int]) -> list[Rule]:
    rules: list[Rule] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        cells = [cell.strip() for cell in text.split("|")]
        if len(cells) != 5:
            sys.exit(f"{path.name}:{number}: expected five cells, found {len(cells)}")
        if cells[4] == ANYTHING and not cells[1].startswith(MAY_ANSWER_ANYTHING):
            sys.exit(f"{path.name}:{number}: accepts any answer of the plugin to {cells[1]}")
        if holds(cells[0].removesuffix("?").strip(), facts):
            rules += rules_of(cells[0], cells[1:])
    return rules


def read_transcript(command: list[str], variables: dict[str, str]) -> dict[Key, str]:
    environment = os.environ | variables
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    seen: Counter[tuple[str, str]] = Counter()
    answers: dict[Key, str] = {}
    for line in done.stdout.splitlines():
        parts = line.split("|", 2)
        if len(parts) != 3:
            continue  # a message of the library
        scenario, call, answer = parts
        answers[scenario, call, seen[scenario, call]] = answer
        seen[scenario, call] += 1
    return answers


def compare(alone: dict[Key, str], plugin: dict[Key, str], rules: list[Rule]) -> list[str]:
    unexpected = []
    for key in dict.fromkeys([*alone, *plugin]):
        before, after = alone.get(key, ABSENT), plugin.get(key, ABSENT)
        if before == after:
            continue
        fitting = [rule for rule in rules if rule.fits(key, before, after)]
        for rule in fitting:
            rule.used = True
        if not fitting:
            unexpected.append(f"{key[0]} | {key[1]} | {before} | {after}")
    return unexpected


def without(patterns: list[str], answers: dict[Key, str]) -> dict[Key, str]:
    """Drops the scenarios that match a pattern, because their answers vary between runs."""
    return {
        key: answer
        for key, answer in answers.items()
        if not any(fnmatch.fnmatchcase(key[0], pattern) for pattern in patterns)
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("prefix", "runner", "client", "plugin"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--differences", required=True, type=Path)
    parser.add_argument(
        "--before-preload", default="", help="libraries to preload before the plugin"
    )
    parser.add_argument(
        "--switched-off", action="store_true", help="MASKWISE_DISABLE=1: no difference is allowed"
    )
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    preload = ":".join(filter(None, (arguments.before_preload, arguments.plugin)))
    tail = [arguments.prefix, "--", arguments.client]
    variables = {"MASKWISE_DISABLE": "1"} if arguments.switched_off else {}
    alone = read_transcript([arguments.runner, *tail], {})
    plugin = read_transcript([arguments.runner, "--preload", preload, *tail], variables)
    facts = {key[1]: int(answer) for key, answer in alone.items() if key[0] == "facts"}
    rules = read_rules(arguments.differences, facts)
    if arguments.switched_off:
        undefined = [rule.scenario for rule in rules if rule.optional]
        alone, plugin = (without(undefined, answers) for answers in (alone, plugin))
        rules = []
    unexpected = compare(alone, plugin, rules)
    unused = [rule for rule in rules if not rule.used and not rule.optional]
    for line in unexpected:
        print(f"differs: {line}")
    for rule in unused:
        print(f"listed but not seen: {rule.scenario} | {rule.call} | {rule.alone} | {rule.plugin}")
    print(f"{len(alone)} answers alone, {len(plugin)} with the plugin, {len(unexpected)} unlisted")
    return 1 if unexpected or unused or not alone else 0


if __name__ == "__main__":
    sys.exit(main())
