"""The skeleton of a host in CONTRIBUTING.md compiles with the headers of src."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def skeleton() -> str:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding a host")[2]
    match = re.search(r"```cpp\n(.*?)```", section, re.DOTALL)
    assert match is not None, "CONTRIBUTING.md has no skeleton of a host"
    return match[1]


def compile_text(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("g++") or pytest.fail("no g++")
    source = folder / "host.cpp"
    source.write_text(text)
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    folders = [f"-I{ROOT / name}" for name in ("src", "include")]
    return subprocess.run(
        [compiler, *flags, *folders, source], capture_output=True, text=True, check=False
    )


def test_the_skeleton_of_a_host_compiles(tmp_path: Path) -> None:
    result = compile_text(skeleton(), tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_name_that_src_lacks_does_not_compile(tmp_path: Path) -> None:
    text = skeleton().replace("find_block", "find_no_block")
    assert "find_no_block" in compile_text(text, tmp_path).stderr
