#!/usr/bin/env python3
"""Writes the generated parts of docs/compatibility.md; --check tells whether they are current.

The table of functions comes from src/onednn/library/functions.inc, that of differences from the
transcript tests' list. With --include DIR, also checks that every function that the headers below
DIR declare is in the list.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ROOT / "src/onednn/library/functions.inc"
DIFFERENCES = ROOT / "tests/contract/transcript/differences.txt"
DOCUMENT = ROOT / "docs/compatibility.md"
VERSIONS = ((3, 2), (3, 7), (3, 12), (3, 13))


@dataclass(frozen=True)
class Function:
    name: str
    since: int  # major * 100 + minor
    does: str  # empty for a plain forward

    def in_version(self, major: int, minor: int) -> str:
        if major * 100 + minor >= self.since:
            return "oneDNN, Maskwise" if self.does else "oneDNN"
        answers = (
            self.does and f"`unimplemented` before {version_text(self.since)}" not in self.does
        )
        return "Maskwise" if answers else "`unimplemented`"


def version_text(since: int) -> str:
    return f"{since // 100}.{since % 100}"


def read_functions(text: str) -> list[Function]:
    functions, does = [], ""
    for line in text.splitlines():
        entry = re.match(r"(FORWARD|HOOK)\((\w+), (\d+),", line)
        if entry:
            if (entry[1] == "HOOK") != bool(does):
                sys.exit(
                    f"functions.inc: {entry[2]}: a HOOK has a //! line above, a FORWARD has none"
                )
            functions.append(Function(entry[2], int(entry[3]), does))
        does = line.removeprefix("//! ") if line.startswith("//! ") else ""
    return functions


def function_table(functions: list[Function]) -> str:
    versions = " | ".join(f"in {major}.{minor}" for major, minor in VERSIONS)
    lines = [
        f"| `dnnl_graph_` | since | {versions} | what Maskwise does |",
        "|---|" + "---|" * (len(VERSIONS) + 2),
    ]
    for function in functions:
        cells = [function.in_version(*version) for version in VERSIONS]
        since = version_text(function.since)
        what = function.does or "passes it on"
        lines.append(f"| `{function.name}` | {since} | {' | '.join(cells)} | {what} |")
    return "\n".join(lines)


def difference_table(text: str) -> str:
    """Rules become rows; a comment above rules becomes a line of its own; sections are headings."""
    blocks: list[str] = []
    rows: list[str] = []
    for line in [*text.split("\n\n", 1)[1].splitlines(), ""]:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5:
            cells[0] = cells[0].replace(" ?", ", sometimes")
            rows.append("| " + " | ".join(cell.replace("*", "\\*") for cell in cells) + " |")
            continue
        if rows:
            head = ["| oneDNN | scenario | call | alone | with Maskwise |", "|---|---|---|---|---|"]
            blocks.append("\n".join([*head, *rows]))
            rows = []
        if line.startswith("# ---"):
            blocks.append("**" + line.strip("# -") + "**")
        elif line.startswith("#"):
            glue = bool(blocks) and not blocks[-1].startswith(("|", "*")) and blocks.pop()
            blocks.append(f"{glue or ''} {line[1:].strip()}".strip())
    return "\n\n".join(blocks)


def replace_part(document: str, name: str, content: str, file: str = DOCUMENT.name) -> str:
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if document.count(begin) != 1 or document.count(end) != 1:
        sys.exit(f"{file}: expected one '{begin.strip()}' and one '{end}'")
    before, rest = document.split(begin)
    return before + begin + content + "\n" + end + rest.split(end)[1]


def undeclared(functions: list[Function], include: Path) -> list[str]:
    listed = {f"dnnl_graph_{function.name}" for function in functions}
    declared = set()
    for header in include.glob("oneapi/dnnl/dnnl_graph*.h"):
        declared |= set(re.findall(r"DNNL_API\s+(dnnl_graph_\w+)\s*\(", header.read_text()))
    if not declared:
        sys.exit(f"no Graph API headers below {include}")
    return [f"{include} declares {name}, which is not listed" for name in sorted(declared - listed)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where outdated")
    parser.add_argument("--include", action="append", default=[], type=Path, metavar="DIR")
    arguments = parser.parse_args()
    functions = read_functions(FUNCTIONS.read_text())
    faults = [fault for include in arguments.include for fault in undeclared(functions, include)]
    old = DOCUMENT.read_text()
    new = replace_part(old, "functions", function_table(functions))
    new = replace_part(new, "differences", difference_table(DIFFERENCES.read_text()))
    if not arguments.check:
        DOCUMENT.write_text(new)
    elif new != old:
        faults.append(f"{DOCUMENT.name} is outdated: run scripts/write_compatibility.py")
    print("\n".join([*faults, f"compatibility: {len(functions)} functions, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
