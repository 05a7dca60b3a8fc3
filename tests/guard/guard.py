"""Compares what does not depend on the clock with what was recorded.

guard.py plans PROGRAM FILE ARGUMENT...    plan lines: each must be as recorded
guard.py instructions PROGRAM FILE         instructions a kernel takes under callgrind: within 3 %
With --record as the first argument the file is written instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOLERANCE = 0.03  # the same compiler gives the same count; another minor version a slightly other


def split_lines(text: str, separator: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {key: value for key, _, value in (line.partition(separator) for line in lines)}


def plan_lines(program: str, arguments: list[str]) -> str:
    return subprocess.run(
        [program, *arguments], check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def instruction_counts(program: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--quiet", "--tool=callgrind", "--dump-instr=no"]
        command += [f"--callgrind-out-file={folder}/profile", program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = {}
        for profile in Path(folder).iterdir():
            text = profile.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
            total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
            if name and total:
                found[name.group(1)] = int(total.group(1))
    return "".join(f"{name}: {count}\n" for name, count in sorted(found.items()))


def differences(kind: str, recorded: dict[str, str], now: dict[str, str]) -> list[str]:
    told = []
    for key in recorded.keys() | now.keys():
        before, after = recorded.get(key), now.get(key)
        if before == after:
            continue
        if kind == "instructions" and before and after:
            change = int(after) / int(before) - 1
            if abs(change) > TOLERANCE:
                told.append(f"{key}: {before} instructions recorded, now {after} ({change:+.1%})")
            continue
        told.append(f"{key}\n  recorded: {before}\n  now:      {after}")
    return sorted(told)


def main() -> int:
    arguments = sys.argv[1:]
    recording = arguments[:1] == ["--record"]
    kind, program, file, *rest = arguments[recording:]
    text = plan_lines(program, rest) if kind == "plans" else instruction_counts(program)
    path = Path(file)
    if recording:
        path.write_text(text)
        print(f"recorded {len(text.splitlines())} lines in {path}")
        return 0
    told = differences(kind, split_lines(path.read_text(), ": "), split_lines(text, ": "))
    for line in told:
        print(line)
    count = len(text.splitlines())
    print(f"{count} lines compared with {path.name}, {len(told)} differ")
    if told:
        print("Where that is meant: scripts/record_guards, and look at what changed in the diff.")
    return 1 if told or not count else 0


if __name__ == "__main__":
    sys.exit(main())
