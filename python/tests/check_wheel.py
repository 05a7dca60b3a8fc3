#!/usr/bin/env python3
"""Builds the wheel, installs it into a fresh environment, and has the doctor look at it.

Both ways in: `scripts/wheel` with `pip install dist/*.whl`, and `pip install .`. What the package
depends on comes from the environment of the tests, so no network is needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]


def run(*command: str | Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [*map(str, command)], cwd=ROOT, env=clean, text=True, capture_output=True, check=False
    )
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def fresh_environment(folder: Path) -> Path:
    """An environment that sees the tests' packages and has their libtbb, and no maskwise."""
    run(sys.executable, "-m", "venv", folder)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for library in Path(sys.prefix, "lib").glob("lib*.so.*"):
        (folder / "lib" / library.name).symlink_to(library)
    return folder / "bin/python"


def examine(python: Path) -> None:
    said = run(python, "-m", "maskwise")
    print(said)
    place = f"{python.parents[1]}/lib/"
    for line in ("same as NumPy  yes", f"libmaskwise    {place}", f"LD_PRELOAD={place}"):
        if line not in said:
            sys.exit(f"the doctor does not say '{line}'")
    if "/usr/lib" in next(line for line in said.splitlines() if line.startswith("libtbb")):
        sys.exit("libtbb is the system's, not the environment's")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(ROOT / "scripts/wheel", folder / "dist")
        (wheel,) = (folder / "dist").glob("maskwise-*.whl")
        python = fresh_environment(folder / "from-wheel")
        run(python, *PIP, wheel)
        examine(python)
        python = fresh_environment(folder / "from-source")
        run(python, *PIP, "--no-build-isolation", "--config-settings=build-dir=build/wheel", ".")
        examine(python)


if __name__ == "__main__":
    main()
