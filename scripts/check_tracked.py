#!/usr/bin/env python3
"""Checks that tracked files are text (except inputs of fuzzers), and that no tracked file names a
path of one machine or the host of a package registry.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = {
    "a path of one machine": re.compile(r"(?<![\w.$}/])/(?:work|root|home|Users|mnt)/\w"),
    "the host of a registry": re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|(?:deb|security|ftp|snapshot)\.debian\.org"
        r"|conda\.anaconda\.org|registry\.npmjs\.org|crates\.io|ghcr\.io|docker\.io)\b"
    ),
}


def tracked_files(root: Path) -> list[Path]:
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout
    return [root / name for name in listing.split("\0") if name and (root / name).is_file()]


def faults_in(path: Path) -> list[str]:
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        return [] if "corpus" in path.parts else [f"{path}: not text"]
    return [
        f"{path}:{number}: {rule}: {line.strip()[:80]}"
        for number, line in enumerate(lines, start=1)
        for rule, pattern in RULES.items()
        if pattern.search(line)
    ]


def main() -> int:
    files = tracked_files(ROOT)
    faults = [fault for path in files for fault in faults_in(path)]
    print("\n".join([*faults, f"tracked files: {len(files)}, {len(faults)} faults"]))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
