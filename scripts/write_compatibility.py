#!/usr/bin/env python3
"""Writes the table of functions in docs/compatibility.md from src/onednn/library/functions.inc.

--check writes nothing and fails if the table is outdated. --include DIR also fails if headers below
DIR declare a function that is not in functions.inc.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ROOT / "src/onednn/library/functions.inc"
DOCUMENT = ROOT / "docs/compatibility.md"
SINCE_EVER = 300  # version 3.0; every supported oneDNN is newer


@dataclass(frozen=True)
class Function:
    name: str
    since: int  # oneDNN's version as major * 100 + minor
    does: str  # what Maskwise changes; empty if Maskwise only forwards the call


def version_text(since: int) -> str:
    return f"{since // 100}.{since % 100}"


def read_functions(text: str) -> list[Function]:
    functions: list[Function] = []
    does = ""
    for line in text.splitlines():
        entry = re.match(r"(FORWARD|HOOK)\((\w+), (\d+),", line)
        if entry:
            if (entry[1] == "HOOK") != bool(does):
                sys.exit(
                    f"functions.inc: {entry[2]}: a //! line must be above each HOOK and no FORWARD"
                )
            if does.startswith("the same"):  # as the function above
                does = does.replace("the same", functions[-1].does, 1)
            functions.append(Function(entry[2], int(entry[3]), does))
        does = line.removeprefix("//! ") if line.startswith("//! ") else ""
    return functions


def function_table(functions: list[Function]) -> str:
    """Lists functions that depend on oneDNN's version. Functions with one text share a row."""
    rows: dict[tuple[int, str], list[str]] = {}
    for function in functions:
        if function.since > SINCE_EVER or "before" in function.does:
            rows.setdefault((function.since, function.does), []).append(f"`{function.name}`")
    lines = ["| `dnnl_graph_` | since | change by Maskwise |", "|---|---|---|"]
    for (since, does), names in rows.items():
        text = does or f"passes it on; `unimplemented` before {version_text(since)}"
        lines.append(f"| {', '.join(names)} | {version_text(since)} | {text} |")
    return "\n".join(lines)


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
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the table is outdated"
    )
    parser.add_argument("--include", action="append", default=[], type=Path, metavar="DIR")
    arguments = parser.parse_args()
    functions = read_functions(FUNCTIONS.read_text())
    faults = [fault for include in arguments.include for fault in undeclared(functions, include)]
    old = DOCUMENT.read_text()
    new = replace_part(old, "functions", function_table(functions))
    if not arguments.check:
        DOCUMENT.write_text(new)
    elif new != old:
        faults.append(f"{DOCUMENT.name} is outdated: run scripts/write_compatibility.py")
    print("\n".join([*faults, f"compatibility: {len(functions)} functions, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
