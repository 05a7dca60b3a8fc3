"""Tests scripts/mutate: its folders and tests, the planted faults and the report."""

import re
from pathlib import Path

import mutate
import pytest


def test_faults_are_in_every_source_folder_and_each_has_tests() -> None:
    folders = {mutate.folder_of(fault.path) for fault in mutate.all_faults("")}
    assert folders == set(mutate.ASKED)
    assert {"src/attention", "integrations/onnxruntime", "integrations/openvino"} <= folders


def test_every_listed_test_exists() -> None:
    names = {name for texts in mutate.ASKED.values() for text in texts for name in text.split()}
    unit_tests = (mutate.ROOT / "tests/unit/CMakeLists.txt").read_text()
    files = {path.stem for path in (mutate.ROOT / "python/tests").glob("test_*.py")}
    elsewhere = {"test_kernels", "test_bytes_touched", "test_lines_written"}
    for name in names - set(mutate.CONTRACTS) - elsewhere:
        stem = name.removeprefix("test_")
        is_program = name != stem and re.search(rf"\b({name}|{stem})\b", unit_tests)
        assert is_program or f"test_{name}" in files, name


def test_the_share_of_noticed_faults_decides(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = {f"src/exec/a.cpp:{n}: a -> b": "noticed by test_api" for n in range(9)}
    verdicts["src/schema/a.cpp:1: a -> b"] = "survived"
    verdicts["src/schema/a.cpp:2: a -> b"] = "does not compile"
    assert mutate.report(verdicts) == 0
    out = capsys.readouterr().out
    assert "scripts/mutate: 9 of 10 noticed (90 %)" in out
    assert "src/exec                  9 of 9 noticed" in out
    verdicts["src/schema/a.cpp:3: a -> b"] = "survived"
    assert mutate.report(verdicts) == 1
    assert mutate.report({}) == 1


def test_a_fault_is_planted_and_reverted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutate, "WORK", tmp_path)
    monkeypatch.setattr(mutate, "KEPT", tmp_path / "verdicts.json")
    source = tmp_path / "tree0/src/api/a.cpp"
    source.parent.mkdir(parents=True)
    source.write_text("a < b;\nc < d;\n")
    faults = mutate.faults_of_line("src/api/a.cpp", 1, "a < b;")
    faults += mutate.faults_of_line("src/api/a.cpp", 2, "c < d;")

    def passes(tree: mutate.Tree, test: str, seconds: float) -> bool:
        return test != "test_strings" or "a >= b" not in source.read_text()

    monkeypatch.setattr(mutate.Tree, "passes", passes)
    monkeypatch.setattr(mutate.Tree, "builds", lambda *_: True)
    monkeypatch.setattr(mutate.Tree, "is_as_before", lambda *_: False)
    kept = mutate.Kept("one", seconds={"test_api": 1, "test_strings": 2, "attention": 3})
    run = mutate.Run(kept, float("inf"))
    run.trees = run.trees[:1]
    run.try_all(faults)
    assert source.read_text() == "a < b;\nc < d;\n"
    assert [*mutate.read_kept("one").verdicts.values()] == ["survived", "noticed by test_strings"]
    assert "src/api/a.cpp:1: a < b;  ->  a >= b;" in capsys.readouterr().out


def test_a_test_that_fails_without_a_fault_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutate, "KEPT", tmp_path / "verdicts.json")
    monkeypatch.setattr(mutate.Tree, "passes", lambda tree, test, seconds: test != "test_api")
    run = mutate.Run(mutate.Kept("one"), float("inf"))
    run.time_tests(run.trees[0], ["test_api", "test_strings"])
    assert [*run.kept.seconds] == ["test_strings"]
    assert "left out: test_api fails without any fault" in capsys.readouterr().out
