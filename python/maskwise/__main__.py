"""Checks this installation and each integration, and prints how to use each integration.

`python -m maskwise run program.py ...` runs a program with maskwise.torch.install() and
maskwise.flash_attn.install().
"""

from __future__ import annotations

import argparse
import runpy
import sys
from importlib import import_module
from pathlib import Path

import maskwise
from maskwise import _self_check


def run(program: str, arguments: list[str]) -> None:
    """Runs a program like `python program arguments`, after install() of maskwise.torch and
    maskwise.flash_attn.
    """
    import_module("maskwise.torch").install()
    import_module("maskwise.flash_attn").install()
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


def start(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m maskwise run", description=run.__doc__)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if not Path(options.program).is_file():
        parser.error(f"no such file: {options.program}")
    if maskwise._broken:
        parser.exit(1, f"{parser.prog}: maskwise cannot be loaded: {maskwise._broken}\n")
    try:
        run(options.program, options.arguments)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        parser.error("torch is not installed")
    return 0


def main() -> int:
    if sys.argv[1:2] == ["run"]:
        return start(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m maskwise", description=__doc__)
    parser.parse_args()
    try:
        return _self_check.examine()
    except ValueError as failure:  # MASKWISE_MAX_ISA has an unknown value
        parser.error(str(failure))


if __name__ == "__main__":
    sys.exit(main())
