#!/usr/bin/env python3
"""Checks that each row of docs/semantics.md names a test, and that the named tests exist.

The last column of a table names a test as `suite.name`. The test exists if a file below tests/ has
TEST, TEST_F or TEST_P with that suite and name.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFINED = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
NAMED = re.compile(r"`(\w+\.\w+)`")


def defined_tests(folder: Path) -> set[str]:
    return {
        f"{suite}.{name}"
        for path in folder.rglob("*.cpp")
        for suite, name in DEFINED.findall(path.read_text())
    }


def check(page: Path, tests: Path) -> list[str]:
    """Returns a message for each row without a test, and for each test that does not exist."""
    known, faults, rows = defined_tests(tests), [], 0
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        cells = line.strip().strip("|").split("|")
        if len(cells) < 3 or set(line) <= set("|-: ") or cells[-1].strip() == "tests":
            continue
        rows += 1
        named = NAMED.findall(cells[-1])
        where = f"{page.name}:{number}: "
        if not named:
            faults.append(f"{where}no test is named for '{cells[0].strip()}'")
        faults += [f"{where}no test {name}" for name in named if name not in known]
    return faults if rows else [f"{page.name}: no table"]


def main() -> int:
    page = ROOT / "docs/semantics.md"
    faults = check(page, ROOT / "tests")
    print("\n".join([*faults, f"tests named in {page.name}: {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
