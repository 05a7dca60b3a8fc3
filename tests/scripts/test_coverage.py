"""Tests the report of scripts/coverage."""

import coverage
import pytest


def test_the_last_line_is_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {("src/plan/a.cpp", 1): 3, ("src/plan/a.cpp", 2): 1, ("python/src/b.cpp", 1): 0}
    assert coverage.print_table(lines, {("src/plan/a.cpp", 1, 0): 2}) == pytest.approx(200 / 3)
    *folders, total = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in folders[1:]] == ["python/src", "src/plan"]
    assert total == "scripts/coverage: 66.7 % of 3 lines, 100.0 % of 1 branches"
