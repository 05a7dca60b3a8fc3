#!/usr/bin/env python3
"""Checks the length of functions and files and prints medians.

A function of more than 70 lines or a file of more than 500 lines fails, unless
scripts/size_exceptions.txt names it with a reason: `<path> <function or *> <reason>`. An exception
that is not needed fails, too. Needs the Python of .deps/tools, which has lizard.
"""

import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import lizard

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LIMIT = 70
FILE_LIMIT = 500
PARSED = {".cpp", ".hpp", ".h", ".c", ".inc", ".py"}


class Size(NamedTuple):
    path: str
    name: str  # "*" is the file itself
    line: int
    lines: int

    def limit(self) -> int:
        return FILE_LIMIT if self.name == "*" else FUNCTION_LIMIT


def is_source(path: Path) -> bool:
    """Returns false for documents, licences and data, which may be long."""
    named = path.name == "CMakeLists.txt" or path.parent.name == "scripts"
    return named or path.suffix in {*PARSED, ".cmake"}


def sizes_of(root: Path, path: str) -> list[Size]:
    text = (root / path).read_text()
    whole = Size(path, "*", 1, len(text.splitlines()))
    if Path(path).suffix not in PARSED:  # lizard would parse the file as C
        return [whole]
    functions = lizard.analyze_file.analyze_source_code(path, text).function_list
    return [whole, *(Size(path, one.name, one.start_line, one.length) for one in functions)]


def source_files(root: Path) -> list[str]:
    """Returns tracked files, and untracked files that git does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = sorted(set(listing.split("\0")))
    files = [name for name in names if (root / name).is_file() and not (root / name).is_symlink()]
    return [name for name in files if is_source(Path(name))]


def exceptions(path: Path) -> set[tuple[str, str]]:
    allowed = set()
    for line in path.read_text().splitlines() if path.is_file() else []:
        words = line.split("#", 1)[0].split(maxsplit=2)
        if words and len(words) < 3:
            raise SystemExit(f"check_sizes: an exception needs a reason: {line}")
        if words:
            allowed.add((words[0], words[1]))
    return allowed


def median(sizes: list[Size]) -> str:
    return (
        f"{statistics.median(size.lines for size in sizes):g} (of {len(sizes)})"
        if sizes
        else "none"
    )


def print_medians(sizes: list[Size]) -> None:
    for top in ("src", "tests", "benchmarks", "scripts"):
        folder_sizes = [size for size in sizes if size.path.startswith(f"{top}/")]
        functions = median([size for size in folder_sizes if size.name != "*"])
        files = median([size for size in folder_sizes if size.name == "*"])
        print(f"median lines in {top}: function {functions}, file {files}")


def check(root: Path) -> int:
    files = source_files(root)
    sizes = [size for path in files for size in sizes_of(root, path)]
    allowed = exceptions(root / "scripts/size_exceptions.txt")
    over = [size for size in sizes if size.lines > size.limit()]
    faults = [size for size in over if size[:2] not in allowed]
    unused = allowed - {size[:2] for size in over}
    for size in faults:
        kind = "file" if size.name == "*" else size.name
        print(f"{size.path}:{size.line}: {kind}: {size.lines} lines, limit {size.limit()}")
    for path, name in sorted(unused):
        print(f"scripts/size_exceptions.txt: no longer needed: {path} {name}")
    print_medians(sizes)
    print(f"sizes: {len(files)} files, {len(faults) + len(unused)} faults")
    return 1 if faults or unused or not files else 0


if __name__ == "__main__":
    sys.exit(check(ROOT))
