#!/usr/bin/env python3
"""usage: scripts/write_figures.py [--check]

Writes the tables of figures in README.md and docs/ from the results in docs/figures, between the
markers `<!-- begin NAME -->` and `<!-- end NAME -->`. docs/figures/CLASS/NAME.json has the newest
results of a CPU class. scripts/take_figures.py writes this file. scripts/draw_picture.py draws the
pictures from it.

A document may show only some rows and columns of a table (PARTS). The table's caption then links to
the results.

--check writes nothing. It fails if a table or picture differs from its results, has no results, or
is outside of markers. In a full clone, it also fails if a result's commit is not in the history, or
if more than 30 later commits changed the code of the result's sources. Old results of other CPU
classes only cause notes, because this machine cannot measure them.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from write_compatibility import replace_part

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks/suites"))
from machine import cpu_class  # noqa: E402
from table import markdown  # noqa: E402

MOST_COMMITS = 30
ENGINE = ("src/kernel", "src/plan", "src/exec", "src/attention")
# A Select does not run the code for row operators and attention.
SELECT_ENGINE = (
    "src/kernel",
    "src/plan",
    "src/exec",
    *(
        f":(exclude)src/{pattern}"
        for pattern in ("*/row_*", "exec/run_rows.*", "kernel/rows", "kernel/attention")
    ),
)
TORCH_SOURCES = tuple(f"python/maskwise/*{name}*" for name in ("torch", "transformers", "flash"))
COMMENT = re.compile("(//|# ).*")
COMMIT = re.compile("^commit$", re.MULTILINE)
# A cell that is only a number, maybe with a unit. Only a script may write a table with such a cell.
FIGURE = re.compile(r"[\d.,]+( ?(x|ns|us|ms|s|%|GB/s|times))?")


@dataclass(frozen=True)
class Table:
    documents: tuple[str, ...]
    name: str
    command: str  # measures the table
    suite: str = ""  # the suite that writes the results; empty if it has the table's name
    sources: tuple[str, ...] = ENGINE  # the measured sources
    drawn: bool = False  # whether a picture shows the newest results instead of a table


ATTENTION, MASKS = "scripts/bench attention", "scripts/bench masks"
README, TORCH = "README.md", "docs/pytorch.md"
HOST, OPENVINO = "docs/onnxruntime.md", "docs/openvino.md"
EVERY = (
    Table((README,), "run", "scripts/run", "run-perf", SELECT_ENGINE),
    Table((README, "docs/attention.md"), "masks", MASKS),
    Table((README,), "kept", MASKS, "masks", drawn=True),
    Table(("docs/fusion.md",), "attention", ATTENTION),
    Table(("docs/attention.md", TORCH), "gradients", "scripts/bench gradients"),
    Table((TORCH,), "transformers", "scripts/bench transformers"),
    Table((TORCH,), "select_torch", "scripts/bench transformers", sources=SELECT_ENGINE),
    Table((TORCH,), "versions", "scripts/plain --versions", sources=TORCH_SOURCES),
    Table(("docs/onednn.md",), "driver", "scripts/bench driver"),
    Table(("docs/python.md",), "python", "scripts/bench python", sources=SELECT_ENGINE),
    Table((HOST,), "onnxruntime", "scripts/bench onnxruntime"),
    Table((OPENVINO,), "openvino", "scripts/bench openvino"),
)
BY_NAME = {table.name: table for table in EVERY}
TABLES = tuple(table for table in EVERY if not table.drawn)
PICTURES = {
    f"docs/pictures/attention-{theme}.svg": (BY_NAME["kept"], theme) for theme in ("light", "dark")
}


@dataclass(frozen=True)
class Part:
    """The part of a table that a document shows."""

    rows: tuple[str, ...] = ()  # beginnings of the rows, with cells joined by " | "; empty: all
    without: tuple[str, ...] = ()  # columns that are not shown


PARTS = {
    "python": Part(
        (
            *(f"f32, {count} random" for count in (64, 65536, 16777216)),
            "f32, 1024x1024, x transposed",
        )
    ),
    "openvino": Part(
        (
            "Where 256x256 16x16x256x256 16x16x256x256 random | f32",
            "attention 12x1024x64, scaled",
            "attention 12x1024x64, causal",
            "attention 12x1024x64, 1 of",
        )
    ),
    "attention": Part(
        (
            "MHA-GPT-inf-fp32-bs1",
            "MHA-distill_bert-inf-fp32-bs1",
            "hf-sdpa-bwd-implicit-mask-bf16-f32",
            "matmul_select",
            "middle causal",
            "causal 1x12x1024x1024",
        ),
        ("of its ceiling", "oneDNN's parts"),
    ),
    "onnxruntime": Part(
        (
            "Where 256x256 16x16x256x256 16x16x256x256 random | f32",
            "Where 8x1x1x384 1 8x12x384x384",
            "attention 12x1024x64",
        )
    ),
    "gradients": Part(
        (
            "no mask | 1x12x1024x64 | float32",
            "causal | 1x12x1024x64 | bfloat16",
            "local 128 (ModernBERT) | 1x12x4096x64 | bfloat16",
        )
    ),
    f"{TORCH} gradients": Part(("training step, ModernBERT-base, 6 layers | 1 x 4096 tokens",)),
    "transformers": Part(
        (
            "ModernBERT-base, 6 layers | 1 x 4096 | float32",
            "ModernBERT-base, compiled | 1 x 16 | float32",
            "ModernBERT-base, compiled | 1 x 1024 | float32",
            "ModernBERT-base, compiled | 1 x 4096 | float32",
            "ModernBERT-base, compiled | 1 x 8192 | float32",
            "ModernBERT-base, exported | 1 x 4096 | float32",
            "Gemma 3 270M, compiled | 1 x 2048 | float32",
            "Gemma 3 270M, exported | 1 x 2048 | float32",
        ),
        ("type", "eager", "as the fastest other", "apart"),
    ),
    "select_torch": Part(
        (
            "where, mask 16x16x256x256",
            "masked_fill, mask 16x16x256x256",
            "masked_fill_, mask 16x16x256x256",
        )
    ),
    "versions": Part(("2.15.0 | 5.24.0", "2.15.0 | 4.57.6", "2.10.0 | 5.24.0", "2.8.0 | 4.56.2")),
    "masks": Part(
        (
            "no mask | 1x12x1024x64 | 1 | bf16",
            "causal, grouped | 1x32/8x1024x128 | 0.50 | bf16",
        )
    ),
    f"{README} masks": Part(
        (
            "causal | 1x12x1024x64",
            "local 128 (ModernBERT) | 1x12x4096x64 | 0.03 | bf16",
            "decode | 1x32/8x1x4096x128 | 0.98 | bf16",
        ),
        ("Maskwise, array", "Maskwise, prepared"),
    ),
}


@dataclass(frozen=True)
class Result:
    """A table's results in one CPU class. Cells are strings."""

    command: str
    commit: str
    date: str
    machine: str
    versions: str
    head: list[str]
    rows: list[list[str]]


class Fault(Exception):
    """Raised with the reason why a table cannot be written."""


def read_result(path: Path) -> Result:
    entries = json.loads(path.read_text())
    if missing := [field.name for field in fields(Result) if not entries.get(field.name)]:
        raise Fault(f"{path}: without {', '.join(missing)}")
    result = Result(**entries)
    if any(len(row) != len(result.head) for row in result.rows):
        raise Fault(f"{path}: a row has another number of cells than the head's {len(result.head)}")
    return result


def results_of(table: Table, root: Path) -> dict[str, Result]:
    paths = sorted((root / "docs/figures").glob(f"*/{table.name}.json"))
    results = {path.parent.name: read_result(path) for path in paths}
    if not results:
        raise Fault(
            f"{table.documents[0]}: no results for the table '{table.name}': "
            f"run {table.command}, then scripts/take_figures.py"
        )
    if table.drawn:
        newest = max(results, key=lambda name: results[name].date)
        return {newest: results[newest]}
    return results


def caption(result: Result) -> str:
    when = f"commit {result.commit[:9]}, {result.date}"
    return f"{result.machine}; `{result.command}`, {when}; {result.versions}."


def part_of(result: Result, part: Part, name: str) -> tuple[list[str], list[list[str]]]:
    """Returns the head and the shown rows, in the order of the results."""
    texts = [" | ".join(row) + " | " for row in result.rows]
    for begin in part.rows:
        if not any(text.startswith(begin) for text in texts):
            raise Fault(f"{name}: no row of the results begins with '{begin}'")
    if lacking := set(part.without) - set(result.head):
        raise Fault(f"{name}: no column of the results is '{lacking.pop()}'")
    columns = [i for i, column in enumerate(result.head) if column not in part.without]
    shown = [
        row
        for row, text in zip(result.rows, texts, strict=True)
        if not part.rows or text.startswith(part.rows)
    ]
    return [result.head[i] for i in columns], [[row[i] for i in columns] for row in shown]


def block_text(table: Table, document: str, cpu_class: str, result: Result) -> str:
    part = PARTS.get(f"{document} {table.name}") or PARTS.get(table.name, Part())
    head, rows = part_of(result, part, table.name)
    described = caption(result)
    if (rows, head) != (result.rows, result.head):
        folder = "docs/figures" if document == README else "figures"
        described += f" [All figures]({folder}/{cpu_class}/{table.name}.json)."
    return f"{described}\n\n{markdown(head, rows)}"


def text_of(table: Table, document: str, root: Path) -> str:
    """Returns the table of each CPU class. README and the tables of gradients show only the newest
    results. The table `masks` shows all, because attention's kernels differ by CPU."""
    results = results_of(table, root)
    newest = max(result.date for result in results.values())
    shows_newest = table.name != "masks" and (table.name == "gradients" or document == README)
    return "\n\n".join(
        block_text(table, document, cpu_class, result)
        for cpu_class, result in results.items()
        if not shows_newest or result.date == newest
    )


def written(document: str, root: Path) -> tuple[str, list[str]]:
    """Returns the document with current tables, and the faults of tables without results."""
    text, faults = (root / document).read_text(), []
    for table in TABLES:
        if document in table.documents:
            try:
                text = replace_part(text, table.name, text_of(table, document, root), document)
            except Fault as fault:
                faults.append(str(fault))
    return text, faults


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sign(picture: str, table: Table, root: Path) -> str:
    """Adds a last line to a picture: a hash of the results and of draw_picture.py, and a hash of
    the picture."""
    script = Path(__file__).with_name("draw_picture.py").read_text()
    source = digest(f"{results_of(table, root)}\n{script}")
    return f"{picture}<!-- of {source}, drawn {digest(picture)} -->\n"


def picture_faults(root: Path) -> list[str]:
    """Checks the hashes in the last lines of pictures. Drawing the pictures would need
    matplotlib."""
    faults = []
    for path, (table, _) in PICTURES.items():
        text = (root / path).read_text() if (root / path).exists() else ""
        drawn = "".join(text.splitlines(keepends=True)[:-1])
        try:
            if not drawn or text != sign(drawn, table, root):
                faults.append(f"{path}: differs from the picture of scripts/draw_picture.py")
        except Fault as fault:
            faults.append(f"{path}: {fault}")
    return faults


def outside_markers(document: str, text: str) -> list[str]:
    """Returns one fault per table row with a figure outside of markers."""
    inside, faults = False, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("<!-- begin ", "<!-- end ")):
            inside = line.startswith("<!-- begin ")
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.lstrip().startswith("|") and not inside and any(map(FIGURE.fullmatch, cells)):
            faults.append(f"{document}:{number}: a table with figures outside of markers")
    return faults


def git(root: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def code_of(patch: str, sign: str) -> str:
    """The removed (-) or added (+) lines of a patch, without comments and white space."""
    lines = re.findall(rf"^[{sign}](?![{sign}]{{2}} )(.*)$", patch, re.MULTILINE)
    return "".join("".join(COMMENT.sub("", line).split()) for line in lines)


def commits_behind(root: Path, commit: str, sources: tuple[str, ...]) -> int | None:
    """Counts the commits since `commit` that changed the code of the sources. Comments and white
    space are not code. Returns None if `commit` is not in the history."""
    options = ("--format=tformat:commit", "--patch")
    log = git(root, "log", *options, f"{commit}..HEAD", "--", *sources)
    patches = [] if log is None else COMMIT.split(log)
    return None if log is None else sum(code_of(p, "-") != code_of(p, "+") for p in patches)


@dataclass(frozen=True)
class Measured:
    where: str  # file of the figures
    commit: str
    sources: tuple[str, ...]
    cpu_class: str


def every_measured(root: Path) -> Iterator[Measured]:
    for path in sorted((root / "docs/figures").glob("*/*.json")):
        where, sources = str(path.relative_to(root)), BY_NAME[path.stem].sources
        yield Measured(where, read_result(path).commit, sources, path.parent.name)


def outdated(root: Path) -> tuple[list[str], list[str]]:
    """Returns faults, and notes about figures that this machine cannot measure or whose age is
    unknown."""
    faults: list[str] = []
    notes: list[str] = []
    unknown: list[str] = []
    for measured in every_measured(root):
        behind = commits_behind(root, measured.commit, measured.sources)
        if behind is None:
            unknown.append(f"{measured.where}: commit {measured.commit[:9]} is not in the history")
        elif behind > MOST_COMMITS:
            here = measured.cpu_class == cpu_class()
            age = f"{behind} commits to its sources came since {measured.commit[:9]}"
            todo = "measure again" if here else "measure again on such a machine"
            (faults if here else notes).append(
                f"{measured.where}: {age}, at most {MOST_COMMITS}: {todo}"
            )
    if unknown and git(root, "rev-parse", "--is-shallow-repository") != "false":
        return faults, [*notes, f"the age of {len(unknown)} results is not known: no history here"]
    return faults + unknown, notes


def write(root: Path, check: bool) -> int:
    faults: list[str] = []
    notes: list[str] = []
    for document in dict.fromkeys(name for table in TABLES for name in table.documents):
        path = root / document
        text, missing = written(document, root)
        faults += missing + outside_markers(document, text)
        if not check:
            path.write_text(text)
        elif text != path.read_text():
            faults.append(f"{document}: tables are not as scripts/write_figures.py writes them")
    if check:
        faults += picture_faults(root)
        old, notes = outdated(root)
        faults += old
    print("\n".join([*faults, *notes, f"figures: {len(faults)} faults"]))
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a table is outdated"
    )
    return write(ROOT, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
