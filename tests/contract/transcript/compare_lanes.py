"""Tests that the plugin computes the same Select results with every oneDNN version (lane).

Runs each lane's transcript client with the plugin. Compares the results of all `compile/`
and `wrong/` scenarios, including the hashes of dst, with the first lane's.
"""

from __future__ import annotations

import argparse
import sys

from compare_transcripts import Key, read_transcript

COMPARED = ("compile/", "wrong/")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--preload", required=True)
    parser.add_argument("lanes", nargs="+", metavar="PREFIX=CLIENT")
    return parser.parse_args()


def select_answers(runner: str, preload: str, lane: str) -> dict[Key, str]:
    prefix, client = lane.split("=", 1)
    answers = read_transcript([runner, "--preload", preload, prefix, "--", client], {})
    return {key: answer for key, answer in answers.items() if key[0].startswith(COMPARED)}


def main() -> int:
    arguments = parse_arguments()
    first, *others = arguments.lanes
    reference = select_answers(arguments.runner, arguments.preload, first)
    differences = 0
    for lane in others:
        answers = select_answers(arguments.runner, arguments.preload, lane)
        for key in dict.fromkeys([*reference, *answers]):
            if reference.get(key) != answers.get(key):
                print(f"{lane}: {key[0]} | {key[1]} | {reference.get(key)} | {answers.get(key)}")
                differences += 1
    print(f"{len(reference)} answers, {len(others) + 1} lanes, {differences} differences")
    return 1 if differences or not reference else 0


if __name__ == "__main__":
    sys.exit(main())
