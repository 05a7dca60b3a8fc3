#!/usr/bin/env python3
"""Installs the wheel into a fresh environment, and has the doctor look at it.

With --build the wheel holds what that build folder has compiled: seconds, in `scripts/test`.
Without, all is compiled from nothing, for both ways in: `scripts/wheel` with `pip install
dist/*.whl`, and `pip install .`; minutes, in `.ci/run`. What the package depends on comes from the
environment of the tests, so no network is needed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = ["-m", "pip", "--disable-pip-version-check"]
INSTALL = [*PIP, "install", "--quiet", "--no-deps", "--no-index"]


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
    provider = run(python, "-c", "import maskwise.onnxruntime as o; print(o.library())")
    if not provider.startswith(place):
        sys.exit(f"the provider of ONNX Runtime is not the wheel's: {provider}")
    extension = run(python, "-c", "import maskwise.openvino as o; print(o.library())")
    if not extension.startswith(place):
        sys.exit(f"the extension of OpenVINO is not the wheel's: {extension}")
    if "/usr/lib" in next(line for line in said.splitlines() if line.startswith("libtbb")):
        sys.exit("libtbb is the system's, not the environment's")


def install(wheel: Path, environment: Path) -> None:
    python = fresh_environment(environment)
    run(python, *INSTALL, wheel)
    examine(python)


def check_build(build: Path, folder: Path) -> None:
    """A project in which everything is compiled: scikit-build-core has only to pack it."""
    package = folder / "project/python/maskwise"
    shutil.copytree(ROOT / "python/maskwise", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "project")
    shutil.copytree(ROOT / "include", folder / "project/include")  # has the version
    run("cmake", "--install", build, "--component", "python", "--prefix", package.parent)
    pack = [*PIP, "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    for setting in ("wheel.cmake=false", "wheel.platlib=true"):
        pack += ["--config-settings", setting]
    run(sys.executable, *pack, "--wheel-dir", folder, folder / "project")
    install(next(folder.glob("maskwise-*.whl")), folder / "from-build")


def check_sources(folder: Path) -> None:
    shutil.rmtree(ROOT / "build/wheel", ignore_errors=True)
    run(ROOT / "scripts/wheel", folder)
    install(next(folder.glob("maskwise-*.whl")), folder / "from-wheel")
    python = fresh_environment(folder / "from-source")
    run(python, *INSTALL, "--no-build-isolation", "--config-settings=build-dir=build/wheel", ".")
    examine(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, help="a build folder with the Python package in it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.build:
            check_build(arguments.build, Path(name))
        else:
            check_sources(Path(name))


if __name__ == "__main__":
    main()
