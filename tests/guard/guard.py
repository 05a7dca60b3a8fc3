"""Compares the lines that PROGRAM prints with the lines recorded in FILE.

guard.py plans PROGRAM FILE ARGUMENT...    plans must be equal
guard.py instructions PROGRAM FILE         instruction counts may differ by 3 %
With --record as the first argument, writes FILE instead. If the CPU lacks an instruction set, its
lines are not compared, and recording is refused.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# counts may differ slightly between minor versions of the compiler
TOLERANCE = 0.03


def split_lines(text: str, separator: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {key: value for key, _, value in (line.partition(separator) for line in lines)}


def output_of(program: str, arguments: list[str]) -> str:
    return subprocess.run(
        [program, *arguments], check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def missing_isas(text: str) -> list[str]:
    return re.findall(r"^# (\w+) is not supported$", text, re.MULTILINE)


def differences(kind: str, recorded: dict[str, str], now: dict[str, str]) -> list[str]:
    lines = []
    for key in recorded.keys() | now.keys():
        before, after = recorded.get(key), now.get(key)
        if before == after:
            continue
        if kind == "instructions" and before and after:
            change = int(after) / int(before) - 1
            if abs(change) > TOLERANCE:
                lines.append(f"{key}: {before} instructions recorded, now {after} ({change:+.1%})")
            continue
        if before is None:
            lines.append(f"{key}\n  not recorded yet (run scripts/record_guards): {after}")
            continue
        lines.append(f"{key}\n  recorded: {before}\n  now:      {after}")
    return sorted(lines)


def record(path: Path, text: str) -> int:
    if missing := missing_isas(text):
        sys.exit(f"guard.py: this machine cannot record {path}: no {', '.join(missing)}")
    path.write_text(text)
    print(f"recorded {len(text.splitlines())} lines in {path}")
    return 0


def compare(kind: str, path: Path, text: str) -> int:
    missing, recorded = missing_isas(text), split_lines(path.read_text(), ": ")
    known = {key: v for key, v in recorded.items() if key.split(" ")[0] not in missing}
    now = split_lines(text, ": ")
    lines = differences(kind, known, now)
    for line in lines:
        print(line)
    print(f"{len(now)} lines compared with {path.name}, {len(lines)} differ")
    if missing:
        print(f"not compared: {len(recorded) - len(known)} lines of {', '.join(missing)}")
    if lines:
        print("If you intended this change, run scripts/record_guards and check its diff.")
    return 1 if lines or not now else 0


def main(arguments: list[str]) -> int:
    recording = arguments[:1] == ["--record"]
    kind, program, file, *rest = arguments[recording:]
    text = output_of(program, rest)
    return record(Path(file), text) if recording else compare(kind, Path(file), text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
