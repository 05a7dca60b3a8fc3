"""Builds the wheels of the Python package and the sdist; scripts/wheels calls this program.

usage: wheels.py FOLDER [MACHINE]   MACHINE (x86_64 or aarch64): only its wheels, no sdist
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
PYTHON = DEPS / "python/bin/python"
TOOLS = DEPS / "wheel_tools/bin/python"
WORK = ROOT / "build/wheels"


@dataclass(frozen=True)
class Machine:
    name: str
    debian: str
    platform: str  # the wheel's platform tag, which check() compares with auditwheel's
    options: tuple[str, ...] = ()

    @property
    def build(self) -> Path:
        return ROOT / f"build/wheels-{self.name}"  # as deep as build/release, for ccache's paths


@dataclass(frozen=True)
class Abi:
    tag: str
    python: str  # value of MASKWISE_PYTHON_ABI in python/CMakeLists.txt
    headers: str


MACHINES = (
    Machine("x86_64", "amd64", "manylinux_2_28_x86_64"),
    # PyPI has no libtbb for AArch64, and Debian's libtbb needs a newer glibc.
    Machine(
        "aarch64",
        "arm64",
        "manylinux_2_34_aarch64",
        (f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/aarch64.cmake",),
    ),
)
ABIS = (
    Abi("cp311-cp311", "3.11", "3.11"),
    Abi("cp312-abi3", "3.12", "3.14"),
    Abi("cp314-cp314t", "3.14t", "3.14"),
)
# Libraries that the user's environment provides.
FOREIGN = ("libtbb.so.12",)
LARGEST = 3_000_000  # bytes of a wheel


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    ran = subprocess.run([*map(str, command)], cwd=cwd, text=True, capture_output=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"scripts/wheels: {' '.join(map(str, command))} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def build(machine: Machine, settings: list[str]) -> None:
    settings = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DMASKWISE_BUILD_TESTS=OFF",
        "-DMASKWISE_BUILD_PYTHON=ON",
        "-DMASKWISE_LANES=",
        f"-DPython_EXECUTABLE={PYTHON}",
        *machine.options,
        *settings,
    ]
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", machine.build, *settings)
    run("cmake", "--build", machine.build)


def cached(machine: Machine, name: str) -> str:
    text = (machine.build / "CMakeCache.txt").read_text()
    match = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    assert match, name
    return match.group(1)


def openvino_headers() -> Path:
    """Returns the headers of the oldest supported release. A library compiled with them also works
    with newer releases."""
    pins = (ROOT / "scripts/openvino.txt").read_text()
    (version,) = re.findall(r"^openvino==(\S+)$", pins, re.MULTILINE)
    (wheel,) = (DEPS / "openvino").glob(f"openvino-{version}-*.whl")
    folder = WORK / wheel.stem
    if not folder.exists():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder / "openvino"


def stage(machine: Machine, abi: Abi) -> Path:
    """Builds the wheel's content as a folder, without metadata."""
    headers = DEPS / f"python_headers-{abi.headers}-{machine.debian}/usr/include"
    build(
        machine,
        [
            f"-DMASKWISE_OPENVINO={openvino_headers()}",  # has no effect on AArch64
            f"-DMASKWISE_PYTHON_ABI={abi.python}",
            f"-DMASKWISE_PYTHON_HEADERS={headers}/python{abi.headers};{headers}",
        ],
    )
    staged = WORK / f"{abi.tag}-{machine.name}"
    shutil.rmtree(staged, ignore_errors=True)
    package = staged / "maskwise"
    shutil.copytree(ROOT / "python/maskwise", package, ignore=shutil.ignore_patterns("__pycache__"))
    run("cmake", "--install", machine.build, "--component", "python", "--prefix", staged)
    strip = cached(machine, "CMAKE_STRIP")
    run(strip, "--strip-unneeded", *package.glob("*.so"), *package.glob("lib/*"))
    if machine.name == "aarch64":
        libtbb = DEPS / "aarch64/usr/lib/aarch64-linux-gnu/libtbb.so.12"
        shutil.copy(libtbb.resolve(), package / "lib/libtbb.so.12")
    return staged


def describe(staged: Path, machine: Machine, abi: Abi) -> None:
    """Writes the metadata of pyproject.toml, and the tag."""
    code = (
        "import scikit_build_core.build as b, sys; b.prepare_metadata_for_build_wheel(sys.argv[1])"
    )
    run(PYTHON, "-c", code, staged)
    (metadata,) = staged.glob("*.dist-info")
    text = (metadata / "METADATA").read_text()
    (metadata / "METADATA").write_text(with_pages(text, os.environ.get("MASKWISE_PAGES", "")))
    lines = ["Wheel-Version: 1.0", "Generator: scripts/wheels", "Root-Is-Purelib: false"]
    (metadata / "WHEEL").write_text("\n".join([*lines, f"Tag: {abi.tag}-{machine.platform}", ""]))


def with_pages(readme: str, pages: str) -> str:
    """Puts the URL `pages` before relative links and pictures, because a package index shows only
    README."""
    if not pages:
        return readme
    relative = r"(?![a-z]+:|#)"
    readme = re.sub(rf"(\]\(){relative}", rf"\1{pages}/", readme)
    return re.sub(rf'((?:src|srcset)="){relative}', rf"\1{pages}/", readme)


def add_licences(staged: Path) -> None:
    """Adds the licences of nanobind, robin-map and Highway (compiled in), and of a libtbb in the
    wheel."""
    (place,) = staged.glob("*.dist-info/licenses")
    (packages,) = (DEPS / "python/lib").glob("python3*/site-packages")
    (nanobind,) = packages.glob("nanobind-*.dist-info/licenses/LICENSE")
    shutil.copy(nanobind, place / "nanobind")
    header = next((packages / "nanobind/ext").glob("**/robin_map.h")).read_text()
    (place / "robin-map").write_text(header[: header.index("*/") + 2] + "\n")
    shutil.copy("/usr/share/doc/libhwy-dev/copyright", place / "highway")
    if (staged / "maskwise/lib/libtbb.so.12").exists():
        shutil.copy(DEPS / "aarch64/usr/share/doc/libtbb12/copyright", place / "oneTBB")


def check(wheel: Path, machine: Machine) -> None:
    """Checks the wheel's symbols and external libraries with auditwheel, and its size."""
    show = (TOOLS, "-m", "auditwheel", "show", "--json", "--ldpaths", "/nonexistent")
    shown = json.loads(run(*show, wheel))
    tag = shown["sym_tag"]
    if not tag.startswith("manylinux_") or glibc(tag) > glibc(machine.platform):
        sys.exit(f"scripts/wheels: {wheel.name} is {tag}: {shown['versioned_symbols']}")
    for name in shown["external_libs"]:
        if name not in FOREIGN:
            sys.exit(f"scripts/wheels: {wheel.name} needs {name}")
    size = wheel.stat().st_size
    if size > LARGEST:
        sys.exit(f"scripts/wheels: {wheel.name} has {size} bytes, more than {LARGEST}")
    print(f"{wheel.name} {size / 1e6:.1f} MB, symbols of {tag}", flush=True)


def glibc(tag: str) -> tuple[int, ...]:
    return tuple(map(int, tag.split("_")[1:3]))


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("maskwise-*.whl"):
        old.unlink()
    only = sys.argv[2:]
    for machine in (one for one in MACHINES if not only or one.name in only):
        for abi in ABIS:
            staged = stage(machine, abi)
            describe(staged, machine, abi)
            add_licences(staged)
            run(TOOLS, "-m", "wheel", "pack", staged, "--dest-dir", folder)
            (wheel,) = folder.glob(f"maskwise-*-{abi.tag}-*_{machine.name}.whl")
            check(wheel, machine)
    if only:
        return
    code = "import scikit_build_core.build as b, sys; b.build_sdist(sys.argv[1])"
    run(PYTHON, "-c", code, folder)


if __name__ == "__main__":
    main()
