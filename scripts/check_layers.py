#!/usr/bin/env python3
"""Checks every #include of the sources against the one table in scripts/layers.txt."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".inc"}


@dataclass
class Table:
    allowed: dict[str, set[str]] = field(default_factory=dict)
    reserved: list[tuple[str, str]] = field(default_factory=list)  # (header prefix, owner)

    def closure(self, folder: str) -> set[str]:
        """The folders that `folder` may include: direct ones and, through them, theirs."""
        reached = {folder}
        waiting = [folder]
        while waiting:
            for other in self.allowed.get(waiting.pop(), set()) - reached:
                reached.add(other)
                waiting.append(other)
        return reached


def read_table(path: Path) -> Table:
    table = Table()
    for line in path.read_text().splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0] == "only":
            table.reserved.append((words[2], words[1]))
        else:
            table.allowed[words[0].rstrip(":")] = set(words[1:])
    return table


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def fault_of(include: str, own: str, table: Table, src_folders: set[str]) -> str:
    for prefix, owner in table.reserved:
        if include.startswith(prefix) and own in src_folders and own != owner:
            return f"only {owner}/ includes {prefix}"
    target = include.split("/", 1)[0]
    if "/" in include and target in src_folders and not {target, include} & table.closure(own):
        return f"{own} may not include {target}/"
    return ""


def check_folder(root: Path, name: str, where: Path, table: Table, src: set[str]) -> list[str]:
    faults = []
    for path in sources(where):
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            fault = fault_of(match.group(2), name, table, src)
            if fault:
                line = text.count("\n", 0, match.start()) + 1
                faults.append(f"{path.relative_to(root)}:{line}: {fault}: {match.group(2)}")
    return faults


def check(root: Path, table: Table) -> list[str]:
    src = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    faults = [f"src/{name}: not in scripts/layers.txt" for name in sorted(src - set(table.allowed))]
    for name in table.allowed:
        where = root / (name if "/" in name or name == "examples" else f"src/{name}")
        faults += check_folder(root, name, where, table, src)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    root = parser.parse_args().root
    faults = check(root, read_table(ROOT / "scripts/layers.txt"))
    print("\n".join([*faults, f"layers: {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
