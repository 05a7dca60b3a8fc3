"""Which faults are planted where, and what counts as noticed."""

from collections import Counter
from pathlib import Path

import mutate
import pytest


def test_every_part_of_the_sources_is_drawn_from() -> None:
    folders = {str(Path(fault.path).parent) for fault in mutate.all_faults("")}
    wanted = {f"src/{name}" for name in ("exec", "kernel", "jit", "graph", "api", "plan", "schema")}
    parts = {f"src/onednn/{name}" for name in ("library", "record", "partition", "hooks")}
    assert {*wanted, *parts, "python/src", "python/maskwise"} <= folders


def test_a_changed_recorded_plan_is_not_what_notices() -> None:
    for stage in mutate.STAGES:
        assert "guard/plans" not in stage.tests and "plan_lines" not in stage.targets


def test_faults_of_a_line() -> None:
    found = mutate.faults_of_line("x.cpp", 3, "if (a < n && b == 1) return; // a < b")
    afters = {fault.after.strip() for fault in found}
    assert afters == {
        "if (a <= n && b == 1) return;",
        "if (a < n || b == 1) return;",
        "if (a < n && b != 1) return;",
    }
    assert mutate.faults_of_line("x.cpp", 3, "    // a < b") == []


def test_the_share_noticed_decides(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = Counter({("src/exec", "noticed"): 9, ("src/jit", "survived"): 1})
    verdicts["src/jit", "does not compile"] = 5
    assert mutate.report(verdicts) == 0
    assert "scripts/mutate: 9 of 10 noticed (90 %)" in capsys.readouterr().out
    verdicts["src/jit", "survived"] = 2
    assert mutate.report(verdicts) == 1
    assert mutate.report(Counter()) == 1
