#!/usr/bin/env python3
"""Checks the exported symbols and the dependencies of the built libraries.

Each library exports exactly these symbols:
- the plugin: the functions in src/onednn/library/functions.inc, and the names without a wildcard in
  src/onednn/library/exports.map
- the provider for ONNX Runtime, and the kernels: the names in their exports.map
- libmaskwise.so: the symbols that its headers mark MASKWISE_API
- the extension of OpenVINO: `create_extensions` and `accelerate`

Every library may depend on glibc (except libm), libstdc++, libgcc_s and libmaskwise_kernels.
libmaskwise.so and the extension may also depend on libtbb. The only search path is the library's
own folder. Every undefined symbol is in a dependency; the extension may also use OpenVINO's
symbols. No library needs a glibc or libstdc++ symbol version newer than NEWEST.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Not libm, because oneDNN 3.2 depends on libm's position among a program's libraries.
NEEDED = re.compile(
    r"^(libmaskwise_kernels|libc|libdl|libpthread|libstdc\+\+|libgcc_s|ld-linux-\S+)\.so[.\d]*$"
)
NEWEST = {"GLIBC": "2.28", "GLIBCXX": "3.4.25", "CXXABI": "1.3.11"}  # manylinux_2_28
NEEDED_BY_ENGINE = "libtbb.so.12"
ACCELERATE = "maskwise::openvino::v1::accelerate("


def tool(*command: str) -> str:
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"check_exports: {' '.join(command)}: {result.stderr.strip()}")
    return result.stdout + result.stderr


def listed_functions(folder: Path) -> set[str]:
    if not (folder / "functions.inc").exists():
        return set()
    text = (folder / "functions.inc").read_text()
    names = re.findall(r"^(?:FORWARD|HOOK)\((\w+),", text, re.MULTILINE)
    return {f"dnnl_graph_{name}" for name in names}


def named_in_full(folder: Path) -> set[str]:
    """Returns the names without a wildcard that the version script exports."""
    text = re.sub(r"#.*", "", (folder / "exports.map").read_text())
    return set(re.findall(r"^\s*(\w+);", text.split("local:")[0], re.MULTILINE))


def declared_names(header: Path) -> set[str]:
    """Returns the names of classes and functions that a public header marks MASKWISE_API."""
    text = header.read_text()
    classes = re.findall(r"^class MASKWISE_API (\w+)", text, re.MULTILINE)
    return {*classes, *re.findall(r"^MASKWISE_API [^;()]*?(\w+)\(", text, re.MULTILINE)}


def symbols(library: Path, *options: str) -> set[str]:
    """Returns exported symbols, except absolute ones (A), which are names of version nodes."""
    lines = tool("nm", "-D", "--defined-only", *options, str(library)).splitlines()
    parts = [line.split(maxsplit=2) for line in lines]
    return {name.split("@")[0] for _, kind, name in parts if kind != "A"}


def first_names(library: Path) -> set[str]:
    """Returns each export's class or function in namespace maskwise, else its demangled name."""
    pattern = r"(?:(?:typeinfo(?: name)?|vtable) for )?maskwise::(?:v\d+::)?(\w+)"
    every = symbols(library, "--demangle")
    return {match[1] if (match := re.match(pattern, symbol)) else symbol for symbol in every}


def dynamic_faults(library: Path, *also_needed: str) -> list[str]:
    dynamic = tool("readelf", "-dW", str(library))
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)) - set(also_needed)
    faults = [f"needs {name}" for name in sorted(needed) if not NEEDED.match(name)]
    paths = re.findall(r"\((RPATH|RUNPATH)\)[^\[]*\[(.*)\]", dynamic)
    faults += [f"has the {kind} {path}" for kind, path in paths if path != "$ORIGIN"]
    return faults + version_faults(library)


def version_faults(library: Path) -> list[str]:
    """Checks symbol versions (docs/decisions/0022-one-wheel-for-many-systems.md)."""
    wanted = set(re.findall(r"\((\w+)_([\d.]+)\)", tool("objdump", "-T", str(library))))
    return [
        f"wants {name}_{version}"
        for name, version in sorted(wanted)
        if name in NEWEST and parts(version) > parts(NEWEST[name])
    ]


def parts(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def undefined_faults(library: Path) -> list[str]:
    missing = re.findall(
        r"(?:undefined symbol: (\S+)|(\S+) => not found)", tool("ldd", "-r", str(library))
    )
    return [f"cannot resolve {name or file}" for name, file in missing]


def differences(listed: set[str], exported: set[str]) -> list[str]:
    faults = [f"does not export {name}" for name in sorted(listed - exported)]
    return faults + [f"exports {name}, which is not listed" for name in sorted(exported - listed)]


def check(library: Path, folder: Path) -> list[str]:
    listed = listed_functions(folder) | named_in_full(folder)
    if not listed:
        return [f"no function is listed in {folder}"]
    faults = differences(listed, symbols(library)) + undefined_faults(library)
    return faults + dynamic_faults(library)


def check_api(library: Path, *headers: Path) -> list[str]:
    empty = [f"nothing is declared in {header}" for header in headers if not declared_names(header)]
    if empty:
        return empty
    declared = set().union(*map(declared_names, headers))
    faults = differences(declared, first_names(library)) + undefined_faults(library)
    return faults + dynamic_faults(library, NEEDED_BY_ENGINE)


def check_extension(library: Path, openvino: Path) -> list[str]:
    """Checks the extension. The extension must not contain code of ov::Any, whose layout differs
    between releases of OpenVINO."""
    every = symbols(library, "--demangle")
    exported = {ACCELERATE if symbol.startswith(ACCELERATE) else symbol for symbol in every}
    faults = differences({ACCELERATE, "create_extensions"}, exported)
    of_openvino = {f"cannot resolve {name}" for name in symbols(openvino)}
    faults += [fault for fault in undefined_faults(library) if fault not in of_openvino]
    if "ov::Any::Impl<" in tool("nm", "--demangle", str(library)):
        faults.append("contains code of ov::Any")
    return faults + dynamic_faults(library, NEEDED_BY_ENGINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument(
        "--lists",
        type=Path,
        default=ROOT / "src/onednn/library",
        help="folder of exports.map and functions.inc",
    )
    parser.add_argument(
        "--header", type=Path, nargs="+", help="check libmaskwise.so against these public headers"
    )
    parser.add_argument("--openvino", type=Path, help="check the extension with this libopenvino")
    arguments = parser.parse_args()
    if arguments.openvino:
        faults, counts = (
            check_extension(arguments.library, arguments.openvino),
            "an entry and a function",
        )
    elif arguments.header:
        faults = check_api(arguments.library, *arguments.header)
        counts = f"{len(set().union(*map(declared_names, arguments.header)))} names"
    else:
        faults = check(arguments.library, arguments.lists)
        listed = len(listed_functions(arguments.lists))
        counts = f"{listed} + {len(named_in_full(arguments.lists))} functions"
    lines = [f"{arguments.library.name} {fault}" for fault in faults]
    print("\n".join([*lines, f"exports: {counts}, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
