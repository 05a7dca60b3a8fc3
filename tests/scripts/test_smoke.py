"""The smoke run finds planted faults in results. The recorded commit ends in + if sources
differ from the commit."""

import subprocess
from pathlib import Path

import cases
import machine
import pytest
import results
import smoke

WANTED = {"limit", "maskwise", "numpy", "openvino"}


def rows(**changes: object) -> list[results.Row]:
    case = cases.shape_table()[0]
    all_rows = [results.make_row(case, impl, "1", [2.0], 1) for impl in sorted(WANTED)]
    results.complete(all_rows, 640, [0.5])
    for row in all_rows:
        for name, value in changes.items():
            impl, _, attribute = name.partition("_")
            if row.impl == impl:
                setattr(row, attribute, value)
    return all_rows


def test_a_peer_may_refuse() -> None:
    assert smoke.faults_of(rows(), WANTED) == []
    assert smoke.faults_of(rows(openvino_seconds_median=None), WANTED) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"maskwise_seconds_median": None},
        {"maskwise_seconds_median": float("nan")},
        {"maskwise_limit_fraction": float("inf")},
        {"limit_seconds_median": 0.0},
        {"numpy_seconds_median": None},
        {"openvino_seconds_median": None, "openvino_version": "2: wrong answer"},
    ],
)
def test_an_invalid_figure_is_a_fault(changes: dict[str, object]) -> None:
    assert len(smoke.faults_of(rows(**changes), WANTED)) == 1


def test_a_missing_program_is_a_fault() -> None:
    assert smoke.faults_of([], WANTED) == ["no case was measured"]
    assert [fault[-8:] for fault in smoke.faults_of(rows()[1:], WANTED)] == ["no limit"]


def test_a_commit_with_changed_sources_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    for name in ("code", "words.md"):
        (tmp_path / name).write_text("1")
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message=one"], check=True)
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    (tmp_path / "words.md").write_text("2")
    assert len(machine.commit()) == 40
    (tmp_path / "code").write_text("2")
    assert machine.commit().endswith("+")
