"""scripts/plain --versions counts the tests of each pair of versions."""

import json
import sys
from pathlib import Path

import pytest
import table
import versions
from versions import HEAD

OLD, NEW = ("2.10.0", "4.57.6"), ("2.11.0", "5.0.0")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder. Stubs replace installs and tests: with OLD's torch, one test fails."""

    def make(folder: Path, cuda_13: bool, wheels: Path) -> Path:
        folder.mkdir()
        return folder / str(wheels)

    def run_pair(python: Path, torch: str, transformers: str) -> list[str]:
        return [torch, transformers, "5", "0" if torch == NEW[0] else "1", "2"]

    monkeypatch.setattr(versions, "ROOT", tmp_path)
    monkeypatch.setattr(versions, "WORK", tmp_path)
    monkeypatch.setattr(versions, "PAIRS", (OLD, NEW))
    monkeypatch.setattr(versions, "make", make)
    monkeypatch.setattr(versions, "install", lambda *_: "Maskwise 1")
    monkeypatch.setattr(versions, "run_pair", run_pair)
    monkeypatch.setattr(table, "write_stamp", lambda *_: None)
    return tmp_path


def run_main(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["versions", "--wheels", str(folder), *arguments])
    return versions.main()


def test_a_file_has_a_case_per_test_and_one_if_its_process_ends(tmp_path: Path) -> None:
    file = tmp_path / "test_a.py"
    file.write_text(
        "import os, pytest\n"
        "def test_a(): pass\n"
        "def test_b(): assert False\n"
        "@pytest.mark.parametrize('x', [1, 2])\n"
        "def test_c(x): pytest.skip('old')\n"
        "def test_d(): os.environ.get('END') and os._exit(3)\n"
    )
    cases = versions.run_file(Path(sys.executable), file, tmp_path)
    assert versions.row_of(*OLD, cases) == [*OLD, "2", "1", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("END", "1")
        cases = versions.run_file(Path(sys.executable), file, tmp_path)
    assert versions.row_of(*OLD, cases) == [*OLD, "0", "1", "0"]


def test_the_table_of_all_pairs(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_main(monkeypatch, work) == 1
    saved = json.loads((work / "build/bench/versions.json").read_text())
    assert saved["head"] == HEAD and saved["versions"] == "Maskwise 1"
    assert saved["rows"] == [[*NEW, "5", "0", "2"], [*OLD, "5", "1", "2"]]
    assert not list(work.glob("cuda-*"))


def test_chosen_pairs_write_no_table(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, work, "--keep", "/".join(NEW)) == 0
    assert "| 2.11.0 | 5.0.0 | 5 | 0 | 2 |\n" in capsys.readouterr().out
    assert (work / "cuda-13").exists() and not (work / "build").exists()
    with pytest.raises(SystemExit):
        run_main(monkeypatch, work, NEW[0])
