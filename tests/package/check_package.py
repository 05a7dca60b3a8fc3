#!/usr/bin/env python3
"""Follows a new user's steps: installs Maskwise, then builds and runs examples/ with it.

Exactly the expected files must be installed, and no CMake file may name the build tree. The oneDNN
example must print its result with the plugin linked, and with the plugin preloaded. The CMake lines
of README and docs/ must build the oneDNN example, too. In each run, the plugin must report a claim.
The example of the C++ API must print the results that oneDNN, OpenVINO and ONNX specify.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = "select: 1 -1e+09 3 -1e+09 5 -1e+09 7 -1e+09"
# Links the plugin before oneDNN's own CMake target.
BY_TARGETS = """find_package(maskwise REQUIRED)
find_package(dnnl CONFIG REQUIRED)
target_link_libraries(your-program PRIVATE maskwise::onednn DNNL::dnnl)
"""
EXPECTED_OF_DIALECTS = """\
oneDNN Select: 1 -1e+09 3 -1e+09 5 -1e+09 7 -1e+09
OpenVINO Select-1: 11 10 1 8 3 4
ONNX Where-16: a b c none none none
refused: openvino::Select-1: cond does not broadcast to then and else: \
cond is {2,3}, then is {3}, else is {}
"""
LARGE = "2048,2048"
DIMS = "<dim>2048</dim><dim>2048</dim></port>"
OPENVINO_MODEL = f"""<net name="model" version="11"><layers>
<layer id="0" name="keep" type="Parameter" version="opset1">
<data element_type="boolean" shape="{LARGE}"/>
<output><port id="0" precision="BOOL">{DIMS}</output></layer>
<layer id="1" name="x" type="Parameter" version="opset1">
<data element_type="f32" shape="{LARGE}"/>
<output><port id="0" precision="FP32">{DIMS}</output></layer>
<layer id="2" name="masked" type="Select" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0">{DIMS}<port id="1">{DIMS}<port id="2">{DIMS}</input>
<output><port id="3" precision="FP32">{DIMS}</output></layer>
<layer id="3" name="y" type="Result" version="opset1"><input><port id="0">{DIMS}</input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="2"/>
<edge from-layer="2" from-port="3" to-layer="3" to-port="0"/>
</edges></net>"""
VERSION = ".".join(re.findall(r" (\d+)$", (ROOT / "include/maskwise/version.h").read_text(), re.M))
INSTALLED = {
    "bin/maskwise-bench",
    "bin/maskwise-info",
    *(f"include/maskwise/{path.name}" for path in (ROOT / "include/maskwise").iterdir()),
    "lib/libmaskwise.so",
    f"lib/libmaskwise.so.{VERSION.split('.')[0]}",
    f"lib/libmaskwise.so.{VERSION}",
    "lib/libmaskwise_onednn.so",
    f"lib/libmaskwise_kernels.so.{VERSION}",
    "lib/libmaskwise_onnxruntime.so",
    "lib/libmaskwise_openvino.so",
    "lib/libmaskwise_openvino_extension.so",
    "lib/cmake/maskwise/maskwise-config-version.cmake",
    "lib/cmake/maskwise/maskwise-config.cmake",
    "lib/cmake/maskwise/maskwise-openvino-targets-BUILD.cmake",
    "lib/cmake/maskwise/maskwise-openvino-targets.cmake",
    "lib/cmake/maskwise/maskwise-targets-BUILD.cmake",
    "lib/cmake/maskwise/maskwise-targets.cmake",
    "lib/pkgconfig/maskwise.pc",
    "share/doc/maskwise/LICENSE",
    "share/doc/maskwise/copyright",
}


def run(*command: str | Path, **environment: str) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}")
    return result.stdout


def install(build: Path, prefix: Path) -> None:
    run("cmake", "--install", build, "--prefix", prefix)
    paths = [str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()]
    files = {re.sub(r"-targets-\w+", "-targets-BUILD", path) for path in paths}
    installed = {name for name in files if not name.startswith("share/maskwise/benchdnn_inputs/")}
    expected = INSTALLED
    if not openvino_package():
        expected = {name for name in INSTALLED if "openvino" not in name}
    if installed != expected:
        raise SystemExit(
            f"cmake --install: missing or unexpected files: {sorted(installed ^ expected)}"
        )
    for path in prefix.rglob("*.cmake"):
        if str(build) in path.read_text() or str(ROOT) in path.read_text():
            raise SystemExit(f"{path.name} names the build tree")


def openvino_package() -> list[Path]:
    """Returns the folder of OpenVINO's CMake package; empty before scripts/setup --python has
    run."""
    pattern = ".deps/python/lib/python3*/site-packages/openvino/cmake"
    return list(ROOT.glob(pattern))


def build_examples(work: Path, prefix: Path, onednn: Path) -> Path:
    build = work / "examples"
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DONEDNN_PREFIX={onednn}"]
    options += [f"-DOpenVINO_DIR={folder}" for folder in openvino_package()]
    run("cmake", "-S", ROOT / "examples", "-B", build, "-G", "Ninja", *options)
    run("cmake", "--build", build)
    return build


def snippets() -> list[str]:
    """Returns the documents' CMake code blocks that link the plugin."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    blocks = re.findall(r"^```cmake\n(.*?)^```", "\n".join(map(Path.read_text, pages)), re.M | re.S)
    return [block for block in blocks if "maskwise::onednn" in block]


def build_snippet(work: Path, snippet: str, prefix: Path, onednn: Path) -> Path:
    (work / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(yours LANGUAGES CXX)\n"
        f"add_executable(your-program {ROOT / 'examples/select.cpp'})\n{snippet}"
    )
    # oneDNN may need a newer libc than this machine has.
    newer_libc = "-Wl,--unresolved-symbols=ignore-in-shared-libs"
    options = [f"-DCMAKE_PREFIX_PATH={prefix};{onednn}", f"-DCMAKE_EXE_LINKER_FLAGS={newer_libc}"]
    run("cmake", "-S", work, "-B", work / "build", "-G", "Ninja", *options)
    run("cmake", "--build", work / "build")
    return work / "build/your-program"


def run_snippets(work: Path, prefix: Path, onednn: Path) -> None:
    if not snippets():
        raise SystemExit("no page shows how to link maskwise::onednn")
    # Debian's oneDNN CMake package works only below /usr. If lib is a link, oneDNN is Debian's.
    has_target = (onednn / "lib/cmake/dnnl").is_dir() and not (onednn / "lib").is_symlink()
    for number, snippet in enumerate([*snippets(), *[BY_TARGETS] * has_target]):
        folder = work / f"snippet-{number}"
        folder.mkdir()
        program = build_snippet(folder, snippet, prefix, onednn)
        output = run(ROOT / "scripts/lane", onednn, "--", program, MASKWISE_VERBOSE="1")
        expect_claimed(output, "the documents' CMake")


def expect_claimed(output: str, way: str) -> None:
    lines = output.splitlines()
    claimed = [line for line in lines if line.startswith("maskwise,claim,")]
    if EXPECTED not in lines:
        raise SystemExit(f"plugin loaded by {way}: no line '{EXPECTED}' in\n{output}")
    if not claimed:
        raise SystemExit(f"plugin loaded by {way}: the plugin claimed nothing:\n{output}")
    print(f"plugin loaded by {way}: {EXPECTED}")


def run_dialects(examples: Path) -> None:
    output = run(examples / "dialects")
    if output != EXPECTED_OF_DIALECTS:
        raise SystemExit(f"expected\n{EXPECTED_OF_DIALECTS}\nthe example prints\n{output}")
    print(output, end="")


def run_openvino(examples: Path, prefix: Path) -> None:
    if not (prefix / "lib/libmaskwise_openvino.so").exists():
        print("built without OpenVINO")
        return
    model = examples / "model.xml"
    model.write_text(OPENVINO_MODEL)
    output = run(examples / "openvino", model, MASKWISE_VERBOSE="1")
    for line in ("maskwise,claim,masked,Select-1 f32", "masked: Reference"):
        if line not in output.splitlines():
            raise SystemExit(f"the OpenVINO example does not print '{line}':\n{output}")
    print(output, end="")


def run_examples(examples: Path, prefix: Path, onednn: Path) -> None:
    lane: list[str | Path] = [ROOT / "scripts/lane"]
    plugin = prefix / "lib/libmaskwise_onednn.so"
    linked = run(*lane, onednn, "--", examples / "select_linked", MASKWISE_VERBOSE="1")
    expect_claimed(linked, "link order")
    preload: list[str | Path] = [*lane, "--preload", plugin, onednn]
    preloaded = run(*preload, "--", examples / "select", MASKWISE_VERBOSE="1")
    expect_claimed(preloaded, "LD_PRELOAD")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="Maskwise's build directory")
    parser.add_argument("--onednn", type=Path, required=True, help="prefix of installed oneDNN")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        prefix = work / "prefix"
        install(arguments.build, prefix)
        examples = build_examples(work, prefix, arguments.onednn)
        run_dialects(examples)
        run_openvino(examples, prefix)
        run_examples(examples, prefix, arguments.onednn)
        run_snippets(work, prefix, arguments.onednn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
