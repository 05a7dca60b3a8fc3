#!/usr/bin/env python3
"""Tests the Debian packages without root and without network.

Builds the packages, checks their fields and files, and unpacks both packages into one folder.
Builds a client against this folder with pkg-config and with CMake. Runs a batch of maskwise-bench
with the unpacked program and plugin, once for each oneDNN of --onednn.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

from check_package import ROOT, VERSION, run

CLIENT = """#include <maskwise/maskwise.hpp>
#include <iostream>
int main() { std::cout << maskwise::version() << '\\n'; }
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES CXX)
find_package(maskwise REQUIRED)
add_executable(client client.cpp)
target_link_libraries(client PRIVATE maskwise::maskwise)
"""
# All allowed dependencies. Libraries that only one Debian release has, such as libfmt9, are not
# allowed.
NEEDED = {"libc6", "libgcc-s1", "libstdc++6", "libtbb12"}
FILES = {
    "maskwise": [
        "usr/bin/maskwise-bench",
        "usr/bin/maskwise-info",
        f"LIB/libmaskwise.so.{VERSION}",
        "LIB/libmaskwise_onednn.so",
        f"LIB/libmaskwise_kernels.so.{VERSION}",
        "LIB/libmaskwise_onnxruntime.so",
        "usr/share/doc/maskwise/copyright",
    ],
    "maskwise-dev": [
        "usr/include/maskwise/maskwise.hpp",
        "usr/include/maskwise/attention.hpp",
        "usr/include/maskwise/attention_gradients.hpp",
        "LIB/libmaskwise.so",
        "LIB/cmake/maskwise/maskwise-config.cmake",
        "LIB/pkgconfig/maskwise.pc",
        "usr/share/doc/maskwise-dev/copyright",
    ],
}


def expect(actual: object, expected: object, subject: str) -> None:
    if actual != expected:
        raise SystemExit(f"{subject}: {actual!r}, expected {expected!r}")


def fields_of(package: Path) -> dict[str, str]:
    text = run("dpkg-deb", "--field", package)
    return dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))


def check_fields(package: Path, name: str) -> None:
    fields = fields_of(package)
    expect(fields["Package"], name, package.name)
    expect(fields["Section"], "libdevel" if name.endswith("-dev") else "libs", f"section of {name}")
    depends = fields["Depends"]
    if name == "maskwise-dev":
        expect(depends, f"maskwise (= {fields['Version']})", "the dependencies of maskwise-dev")
    else:
        names = {entry.split()[0] for entry in depends.split(",")}
        expect(names, NEEDED, f"the dependencies of {name}")


def unpack(package: Path, name: str, root: Path, lib: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run("dpkg-deb", "--extract", package, folder)
        files = [file.replace("LIB", lib) for file in FILES[name]]
        lacking = [file for file in files if not os.path.lexists(Path(folder) / file)]
        expect(lacking, [], f"files missing in {package.name}")
        folders = {path.name for path in Path(folder, "usr").iterdir()}
        expect(
            folders - {"bin", "include", "lib", "share"},
            set(),
            f"unexpected folders in {package.name}",
        )
    run("dpkg-deb", "--extract", package, root)


def build_by_pkg_config(work: Path, libraries: Path) -> Path:
    words = ["pkg-config", "--cflags", "--libs", "maskwise"]
    flags = run(*words, PKG_CONFIG_LIBDIR=str(libraries / "pkgconfig")).split()
    run("c++", "-std=c++20", work / "client.cpp", *flags, "-o", work / "by_pkg_config")
    return work / "by_pkg_config"


def build_by_cmake(work: Path, root: Path) -> Path:
    (work / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={root / 'usr'}")
    run("cmake", "--build", work / "build")
    return work / "build/client"


def run_bench(root: Path, libraries: Path, onednn: str) -> None:
    plugin, program = libraries / "libmaskwise_onednn.so", root / "usr/bin/maskwise-bench"
    lane: list[str | Path] = [ROOT / "scripts/lane", "--preload", plugin, onednn, "--"]
    output = run(*lane, program, "--batch=select_smoke", LD_LIBRARY_PATH=str(libraries))
    if " failed:0 " not in output or "Maskwise in front" not in output:
        raise SystemExit(f"maskwise-bench failed or had no plugin, with {onednn}:\n{output}")
    print(output.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="Maskwise's build directory")
    parser.add_argument(
        "--architecture", required=True, help="Debian's library folder, such as x86_64-linux-gnu"
    )
    parser.add_argument("--onednn", nargs="*", default=[], help="prefixes of installed oneDNNs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work, root = Path(folder), Path(folder) / "root"
        config = arguments.build / "CPackConfig.cmake"
        run("cpack", "--config", config, "-G", "DEB", "-B", work / "packages")
        lib = f"usr/lib/{arguments.architecture}"
        for name in FILES:
            (package,) = (work / "packages").glob(f"{name}_*.deb")
            check_fields(package, name)
            unpack(package, name, root, lib)
        (work / "client.cpp").write_text(CLIENT)
        libraries = root / lib
        for client in (build_by_pkg_config(work, libraries), build_by_cmake(work, root)):
            print(client.name, run(client, LD_LIBRARY_PATH=str(libraries)), end="")
        for onednn in arguments.onednn:
            run_bench(root, libraries, onednn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
