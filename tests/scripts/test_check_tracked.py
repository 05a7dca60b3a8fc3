"""Tracked files with paths of one machine or hosts of registries are found, and no others."""

import subprocess
from pathlib import Path

import check_tracked
import pytest

# Put together here, so that this file itself stays clean.
BAD = [
    "/" + "root/x",
    'path = "/' + 'home/someone/x"',
    "see /" + "work/main",
    "https://" + "pypi" + ".org/simple",
    "http://" + "deb.debian" + ".org/debian",
]
GOOD = ["$root/home/x", "${HOME}/x", "build/work/x", "/usr/share", "from PyPI", "src/root/x.hpp"]


def faults(root: Path, text: str) -> list[str]:
    path = root / "a.txt"
    path.write_text(text + "\n")
    return check_tracked.faults_in(path)


@pytest.mark.parametrize("text", BAD)
def test_finds(tmp_path: Path, text: str) -> None:
    assert len(faults(tmp_path, text)) == 1


@pytest.mark.parametrize("text", GOOD)
def test_lets_pass(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text) == []


def test_finds_what_is_not_a_text(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF\xff\xfe")
    assert check_tracked.faults_in(tmp_path / "core") == [f"{tmp_path / 'core'}: not a text"]


def test_only_tracked_files_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text(BAD[0])
    assert check_tracked.tracked_files(tmp_path) == []
    subprocess.run(["git", "-C", str(tmp_path), "add", "new.txt"], check=True)
    assert [path.name for path in check_tracked.tracked_files(tmp_path)] == ["new.txt"]
