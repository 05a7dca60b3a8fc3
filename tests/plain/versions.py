#!/usr/bin/env python3
"""Runs the tests of the torch integration with many versions of torch and transformers.

usage: scripts/plain --versions [--wheels FOLDER] [--keep] [TORCH/TRANSFORMERS...]

Prints a row per pair of versions: the numbers of tests that passed, failed and were skipped.
Without pairs, runs PAIRS and writes build/bench/versions.json for scripts/take_figures.py.
build/versions has the logs. --keep leaves the environments there.

CUDA's libraries are larger than torch. So pairs with the same version of CUDA share an environment.
For each pair, pip replaces torch and transformers.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "benchmarks/suites")]

from install_deps import DEPS, Failure, pip, run_quietly  # noqa: E402
from summarize_tests import Case, junit_cases  # noqa: E402
from table import line_of, markdown, save_table  # noqa: E402

WORK = ROOT / "build/versions"
# Together, these files use every entry point of the integration. The slowest file is first.
TESTS = (
    "transformers_graphs",
    "transformers",
    "torch_masks",
    "transformers_arguments",
    "torch_select",
    "torch_operator",
    "torch_install",
    "flash_attn",
)
TOOLS = ("hypothesis", "ml_dtypes", "pytest")
AT_ONCE = 2
TIME_LIMIT_S = 3600  # for a test file
NEWEST_TORCH, NEWEST_TRANSFORMERS = "2.15.0", "5.24.0"
# The newest torch with every transformers, every torch with the newest transformers, and old pairs.
PAIRS = (
    (NEWEST_TORCH, NEWEST_TRANSFORMERS),
    *((NEWEST_TORCH, transformers) for transformers in ("5.16.1", "5.8.1", "5.0.0", "4.57.6")),
    *((torch, NEWEST_TRANSFORMERS) for torch in ("2.14.1", "2.13.0", "2.12.1", "2.11.0", "2.10.0")),
    ("2.10.0", "4.57.6"),
    ("2.8.0", "4.56.2"),
)
# From torch 2.11 on, PyPI's torch wheels load CUDA 13, which scripts/torch.txt pins. Older torch
# wheels load CUDA 12, which torch-2.10.txt pins.
FIRST_WITH_CUDA_13 = (2, 11)
HEAD = ["torch", "transformers", "passed", "failed", "skipped"]


def has_cuda_13(torch: str) -> bool:
    return tuple(map(int, torch.split(".")[:2])) >= FIRST_WITH_CUDA_13


def make(folder: Path, cuda_13: bool, wheels: Path) -> Path:
    """Creates an environment with CUDA and Maskwise, without Maskwise's dependencies. Returns its
    Python."""
    run_quietly("creating a Python environment", [sys.executable, "-m", "venv", str(folder)])
    python = folder / "bin/python"
    if cuda_13:
        (packages,) = folder.glob("lib/python3*/site-packages")
        shared = DEPS / "torch" / packages.relative_to(folder)
        (packages / "torch.pth").write_text(f"{shared}\n")
        (packages / "nvidia").symlink_to(shared / "nvidia")  # on torch's RPATH
    else:
        pip(python, ["--requirement", str(Path(__file__).with_name("torch-2.10.txt"))])
    pip(python, ["--no-index", "--find-links", str(wheels), "maskwise"])
    return python


def install(python: Path, torch: str, transformers: str) -> str:
    """Installs the pair. Returns the versions of Maskwise and NumPy."""
    pip(python, [f"torch=={torch}"])
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    packages = ["maskwise", f"transformers=={transformers}", *TOOLS]
    run_quietly("the download by pip", [*command, "--no-compile", *packages])
    code = "import torch, transformers; print(torch.__version__, transformers.__version__)"
    installed = run_quietly("the import", [str(python), "-c", code]).split()
    if [installed[0].partition("+")[0], installed[1]] != [torch, transformers]:
        raise Failure(f"the environment has {installed}")
    code = "import maskwise, numpy; print(maskwise.__version__, numpy.__version__)"
    maskwise, numpy = run_quietly("the import", [str(python), "-c", code]).split()
    return f"Maskwise {maskwise}, NumPy {numpy}"


def run_file(python: Path, file: Path, logs: Path) -> list[Case]:
    """Returns the file's cases, or one failed case if pytest timed out or wrote no report."""
    report = logs / f"{file.stem}.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        with (logs / f"{file.stem}.log").open("w") as log:
            subprocess.run(
                [*command, f"--junitxml={report}", str(file)],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=TIME_LIMIT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return [Case(file.stem, "failed", "out of time")]
    return list(junit_cases(report)) if report.exists() else [Case(file.stem, "failed")]


def row_of(torch: str, transformers: str, cases: list[Case]) -> list[str]:
    counts = Counter(case.state for case in cases)
    return [torch, transformers, *(str(counts[state]) for state in HEAD[2:])]


def run_pair(python: Path, torch: str, transformers: str) -> list[str]:
    """Returns the pair's row."""
    logs = WORK / f"{torch}-{transformers}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    files = [ROOT / f"python/tests/test_{name}.py" for name in TESTS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = pool.map(lambda file: run_file(python, file, logs), files)
    cases = [case for result in results for case in result]
    for case in cases:
        if case.state == "failed":
            print(f"failed: {case.name} {case.reason}".strip())
    return row_of(torch, transformers, cases)


def run_pairs(
    pairs: list[tuple[str, str]], wheels: Path, keep: bool
) -> Iterator[tuple[str, list[str]]]:
    """For each pair, yields the versions of Maskwise and NumPy, and the pair's row."""
    for cuda_13 in (True, False):
        folder = WORK / f"cuda-{13 if cuda_13 else 12}"
        shutil.rmtree(folder, ignore_errors=True)
        python = None
        for torch, transformers in pairs:
            if has_cuda_13(torch) == cuda_13:
                python = python or make(folder, cuda_13, wheels)
                versions = install(python, torch, transformers)
                yield versions, run_pair(python, torch, transformers)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def pair_of(text: str) -> tuple[str, str]:
    torch, _, transformers = text.partition("/")
    if not (torch and transformers):
        raise argparse.ArgumentTypeError(f"'{text}' is not TORCH/TRANSFORMERS")
    return torch, transformers


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/plain --versions", description=__doc__)
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("pairs", nargs="*", type=pair_of, metavar="TORCH/TRANSFORMERS")
    arguments = parser.parse_args()
    pairs, wheels = arguments.pairs or list(PAIRS), arguments.wheels.resolve(strict=True)
    rows: list[list[str]] = []
    print(markdown(HEAD), flush=True)
    for versions, row in run_pairs(pairs, wheels, arguments.keep):
        print(line_of(row), flush=True)
        rows.append(row)
        if not arguments.pairs:  # after each row, so that a stopped run has a table, too
            save_table(ROOT / "build/bench", "versions", versions, HEAD, rows)
    failed = sum(row[HEAD.index("failed")] != "0" for row in rows)
    print(f"scripts/plain: {len(rows)} pairs of versions, {failed} with failed tests")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
