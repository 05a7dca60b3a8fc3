"""Compiles the declarations in integrations/onnxruntime against ONNX Runtime's headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "integrations/onnxruntime"
TYPES = ROOT / "src/tensor/data_types.inc"
REAL = ROOT / ".deps/onnxruntime-headers/usr/include/onnxruntime"

pytestmark = pytest.mark.skipif(
    not REAL.is_dir(), reason="Debian's libonnxruntime-dev could not be fetched"
)


def compile_with(ours: Path, src: Path = ROOT / "src") -> subprocess.CompletedProcess[str]:
    folders = [f"-I{ours}", f"-I{src}", f"-isystem{REAL}"]
    command = ["c++", "-std=c++20", "-fsyntax-only", *folders]
    return subprocess.run(
        [*command, str(ROOT / "tests/onnxruntime/abi.cpp")],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_function_and_structure_matches() -> None:
    ran = compile_with(OURS)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("file", "text", "wrong", "message"),
    [
        ("functions.inc", "MAIN(91, ", "MAIN(92, ", "KernelContext_GetOutput has another slot"),
        ("functions.inc", "EP(3, ", "EP(2, ", "AddSingleNode has another slot"),
        ("functions.inc", "std::size_t batches", "int batches", "ParallelFor has another type"),
        ("tensor/data_types.inc", "2, 16, BFLOAT16", "2, 15, BFLOAT16", "BFLOAT16"),
        ("abi.hpp", "std::uint32_t flags;", "", "flags"),
        ("abi.hpp", "CreateAllocator, ReleaseAllocator", "CreateAllocator", "CreateDataTransfer"),
    ],
)
def test_a_wrong_declaration_is_reported(
    file: str, text: str, wrong: str, message: str, tmp_path: Path
) -> None:
    for name in ("functions.inc", "abi.hpp"):
        shutil.copy(OURS / name, tmp_path)
    (tmp_path / "tensor").mkdir()
    shutil.copy(TYPES, tmp_path / "tensor")
    source = (tmp_path / file).read_text()
    assert source.count(text) == 1
    (tmp_path / file).write_text(source.replace(text, wrong))
    ran = compile_with(tmp_path, tmp_path)
    assert ran.returncode != 0
    assert message in ran.stderr
