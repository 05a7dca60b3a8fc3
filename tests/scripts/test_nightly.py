"""scripts/nightly runs every stage, even after a failure, and prints each result."""

import time
from pathlib import Path

import nightly
import pytest
from nightly import Stage


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly, "LOGS", tmp_path / "logs")


def program(folder: Path, text: str) -> str:
    path = folder / f"program{len(list(folder.glob('program*')))}"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_runs_the_stages_after_a_failing_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = [
        Stage("bad", program(tmp_path, "echo 'x: 1 | 2'; exit 3"), 1, "^x: (.*)"),
        Stage("good", program(tmp_path, "echo x: 5 of 5; echo x: 6") + " {seconds}", 1, "^x: (.*)"),
    ]
    assert nightly.run_stages(stages) == 1
    printed = capsys.readouterr().out
    assert "bad       FAILED: 1 / 2\n" in printed and "good      passed: 5 of 5; 6\n" in printed
    assert printed.endswith("scripts/nightly: FAILED: bad\n")
    assert nightly.run_stages(stages[1:]) == 0


def test_a_stage_that_prints_no_figures_fails(tmp_path: Path) -> None:
    stage = Stage("mute", program(tmp_path, "exit 0"), 1, "^x")
    assert nightly.run_stage(stage).verdict == "FAILED: no figures"


def test_a_stage_out_of_time_ends_with_its_child_processes(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = program(tmp_path, f"while true; do touch {alive}; sleep 0.1; done")
    stage = Stage("slow", program(tmp_path, f"echo x; {child} & wait"), 0.02, "^(x)")
    assert nightly.run_stage(stage).verdict == "FAILED: out of time"
    alive.unlink()
    time.sleep(0.5)
    assert not alive.exists()


@pytest.mark.parametrize(
    ("name", "line", "figures"),
    [
        ("mutate", "scripts/mutate: 9 of 10 noticed (90 %)", "9 of 10 noticed (90 %)"),
        ("coverage", "scripts/coverage: 97 % of 9 lines", "97 % of 9 lines"),
        ("fuzz", "cases on each: 11500, all right", "cases on each: 11500, all right"),
        ("fuzz", "select: number_of_executed_units: 7", "select: number_of_executed_units: 7"),
        ("soak", "scripts/soak: 9 samples", "9 samples"),
        ("asan", "    3.13: 20 of 20 passed", "3.13: 20 of 20 passed"),
        ("tsan", "no lane: 2 passed, 0 failed", "no lane: 2 passed, 0 failed"),
        ("aarch64", "scripts/test_aarch64: max: 100% tests", "max: 100% tests"),
        ("memcheck", "memcheck test_base: clean", "test_base: clean"),
        ("clients", "torch: passed: 3.7.1, 2 partitions", "torch: passed: 3.7.1, 2 partitions"),
    ],
)
def test_the_printed_figures_are_found(name: str, line: str, figures: str) -> None:
    stage = next(stage for stage in nightly.STAGES if stage.name == name)
    assert nightly.figures_of(f"words\n{line}\nmore\n", stage.figures) == figures
