#!/usr/bin/env python3
"""Checks the length of functions and files and prints medians.

A function of more than 70 lines or a file of more than 500 fails, unless it is named with a reason
in scripts/size_exceptions.txt: `<path> <function or *> <reason>`. Run it with the Python of
.deps/tools, which has lizard.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import lizard

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LIMIT = 70
FILE_LIMIT = 500
CPP = {".cpp", ".hpp", ".h", ".c", ".inc"}


@dataclass(frozen=True)
class Size:
    path: str
    name: str  # "*" is the file itself
    line: int
    lines: int

    def limit(self) -> int:
        return FILE_LIMIT if self.name == "*" else FUNCTION_LIMIT


def cpp_functions(path: Path, shown: str) -> list[Size]:
    found = lizard.analyze_file.analyze_source_code(str(path), path.read_text())
    return [
        Size(shown, item.name, item.start_line, item.end_line - item.start_line + 1)
        for item in found.function_list
    ]


def python_functions(path: Path, shown: str) -> list[Size]:
    return [
        Size(shown, node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def sizes_of(path: Path, shown: str) -> list[Size]:
    whole = Size(shown, "*", 1, len(path.read_text().splitlines()))
    if path.suffix in CPP:
        return [whole, *cpp_functions(path, shown)]
    if path.suffix == ".py":
        return [whole, *python_functions(path, shown)]
    return [whole]


def source_files(root: Path) -> list[Path]:
    """Tracked and new files that people write and read; documents and licences may be long."""
    command = [
        "git",
        "-C",
        str(root),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    paths = [root / name for name in sorted(set(listing.split("\0"))) if name]
    code = CPP | {".py", ".cmake"}
    return [
        path
        for path in paths
        if path.is_file()
        and (path.suffix in code or path.name == "CMakeLists.txt" or path.parent.name == "scripts")
    ]


def exceptions(path: Path) -> set[tuple[str, str]]:
    allowed = set()
    for line in path.read_text().splitlines() if path.is_file() else []:
        words = line.split("#", 1)[0].split(maxsplit=2)
        if words and len(words) < 3:
            raise SystemExit(f"check_sizes: an exception needs a reason: {line}")
        if words:
            allowed.add((words[0], words[1]))
    return allowed


def median(values: Iterable[int]) -> str:
    listed = list(values)
    return f"{statistics.median(listed):g} (of {len(listed)})" if listed else "none"


def print_medians(sizes: list[Size]) -> None:
    for top in ("src", "tests", "benchmarks", "scripts"):
        own = [size for size in sizes if size.path.split("/", 1)[0] == top]
        functions = median(size.lines for size in own if size.name != "*")
        files = median(size.lines for size in own if size.name == "*")
        print(f"median lines in {top}: function {functions}, file {files}")


def check(root: Path) -> int:
    files = source_files(root)
    sizes = [size for path in files for size in sizes_of(path, str(path.relative_to(root)))]
    allowed = exceptions(root / "scripts/size_exceptions.txt")
    over = [size for size in sizes if size.lines > size.limit()]
    faults = [size for size in over if (size.path, size.name) not in allowed]
    unused = allowed - {(size.path, size.name) for size in over}
    for size in faults:
        what = "file" if size.name == "*" else size.name
        print(f"{size.path}:{size.line}: {what}: {size.lines} lines, limit {size.limit()}")
    for path, name in sorted(unused):
        print(f"scripts/size_exceptions.txt: no longer needed: {path} {name}")
    print_medians(sizes)
    print(f"sizes: {len(files)} files, {len(faults) + len(unused)} faults")
    return 1 if faults or unused or not files else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    return check(parser.parse_args().root)


if __name__ == "__main__":
    sys.exit(main())
