#!/usr/bin/env python3
"""Checks every #include against scripts/layers.txt, and that no files of src/ include each other in
a cycle."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".inc"}


@dataclass
class Table:
    allowed: dict[str, set[str]] = field(default_factory=dict)
    reserved: list[tuple[str, str]] = field(default_factory=list)  # (header prefix, owner)

    def closure(self, folder: str) -> set[str]:
        """Returns the folders that `folder` may include, directly or through other folders."""
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


def folder_of(path: str, folders: Iterable[str]) -> str:
    """Returns the innermost of the folders that contain the path; "" if no folder does."""
    return max((name for name in folders if path.startswith(name + "/")), key=len, default="")


def fault_of(include: str, folder: str, table: Table, src_folders: set[str]) -> str:
    for prefix, owner in table.reserved:
        if include.startswith(prefix) and folder in src_folders and folder.split("/")[0] != owner:
            return f"only {owner}/ includes {prefix}"
    target = folder_of(include, src_folders)
    if target and not {target, include} & table.closure(folder):
        return f"{folder} may not include {target}/"
    return ""


def check_file(root: Path, path: Path, folder: str, table: Table, src: set[str]) -> list[str]:
    faults = []
    text = path.read_text()
    for match in INCLUDE.finditer(text):
        fault = fault_of(match.group(2), folder, table, src)
        if fault:
            line = text.count("\n", 0, match.start()) + 1
            faults.append(f"{path.relative_to(root)}:{line}: {fault}: {match.group(2)}")
    return faults


def include_cycles(src: Path) -> list[str]:
    """Returns a message if units (a header with its source) include each other in a cycle."""
    units: dict[str, set[str]] = {}
    for path in sources(src):
        unit = str(path.relative_to(src).with_suffix(""))
        names = [name for _, name in INCLUDE.findall(path.read_text())]
        includes = {str(Path(name).with_suffix("")) for name in names}
        units.setdefault(unit, set()).update(includes - {unit})
    try:
        TopologicalSorter(units).prepare()
    except CycleError as cycle:
        return ["src: units include each other in a cycle: " + " -> ".join(cycle.args[1])]
    return []


def check(root: Path, table: Table) -> list[str]:
    src = {name for name in table.allowed if (root / "src" / name).is_dir()}
    present = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    faults = [f"src/{name}: not in scripts/layers.txt" for name in sorted(present - src)]
    for path in sources(root / "src"):
        folder = folder_of(str(path.relative_to(root / "src")), src)
        if folder:
            faults += check_file(root, path, folder, table, src)
    for name in table.allowed.keys() - src:
        for path in sources(root / name):
            faults += check_file(root, path, name, table, src)
    return faults + include_cycles(root / "src")


def main() -> int:
    faults = check(ROOT, read_table(ROOT / "scripts/layers.txt"))
    print("\n".join([*faults, f"layers: {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
