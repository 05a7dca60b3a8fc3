"""The summary fails when a test failed, when a lane was empty and when nothing ran."""

from pathlib import Path

import pytest
from summarize_tests import summarize


def report(root: Path, *cases: tuple[str, str]) -> Path:
    lines = [f'<testcase name="{name}" status="{status}"/>' for name, status in cases]
    path = root / "tests.xml"
    path.write_text(f"<testsuite>{''.join(lines)}</testsuite>")
    return path


GOOD = [("3.13/a", "run"), ("3.2/a", "run"), ("unit.dims", "run")]


def test_all_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summarize(report(tmp_path, *GOOD), ["3.13", "3.2"], partial=False) == 0
    assert "3.13: 1 of 1 passed" in capsys.readouterr().out


@pytest.mark.parametrize("status", ["fail", "notrun", "disabled", "unknown"])
def test_one_did_not_pass(tmp_path: Path, status: str) -> None:
    cases = [*GOOD, ("3.2/b", status)]
    assert summarize(report(tmp_path, *cases), ["3.13", "3.2"], partial=True) == 1


def test_an_empty_lane_fails_unless_selected_away(tmp_path: Path) -> None:
    written = report(tmp_path, *GOOD)
    assert summarize(written, ["3.13", "3.2", "3.7"], partial=False) == 1
    assert summarize(written, ["3.13", "3.2", "3.7"], partial=True) == 0


def test_nothing_ran(tmp_path: Path) -> None:
    assert summarize(report(tmp_path), ["3.13"], partial=False) == 1
