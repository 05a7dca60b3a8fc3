"""The check finds machine paths and registry hosts in tracked files, and passes other text."""

import subprocess
from pathlib import Path

import check_tracked
import pytest

# Each text is split, so that this file passes the check.
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
def test_a_machine_path_or_registry_host_is_found(tmp_path: Path, text: str) -> None:
    assert len(faults(tmp_path, text)) == 1


@pytest.mark.parametrize("text", GOOD)
def test_other_text_passes(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text) == []


def test_finds_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF\xff\xfe")
    assert check_tracked.faults_in(tmp_path / "core") == [f"{tmp_path / 'core'}: not text"]


def test_checks_only_tracked_files(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text(BAD[0])
    assert check_tracked.tracked_files(tmp_path) == []
    subprocess.run(["git", "-C", str(tmp_path), "add", "new.txt"], check=True)
    assert [path.name for path in check_tracked.tracked_files(tmp_path)] == ["new.txt"]
