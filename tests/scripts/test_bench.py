"""Tests the select suite of scripts/bench: its cases, targets and repeated measurements."""

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench
import cases
import extras
import pytest
import results
import targets
import worker


def test_every_row_of_the_table_is_a_case_that_broadcasts() -> None:
    table = cases.shape_table()
    assert len({case.name for case in table}) == len(table) >= 29
    for case in table:
        shape = cases.broadcast(case.src_0.dims, case.src_1.dims)
        assert shape == case.dst.dims == cases.broadcast(shape, case.cond.dims), case.name


def row_of(
    impl: str,
    seconds: float | None,
    failure: str = "",
    share: float = 0.9,
    again: tuple[float, ...] = (),
) -> results.Row:
    version = f"1: {failure}" if failure else "1"
    case, samples = cases.shape_table()[0], [seconds] if seconds else []
    row = results.make_row(case, impl, version, samples, 1)
    return replace(row, bytes=1 << 30, limit_fraction=share, again=list(again))


def rows_of(*rows: results.Row) -> results.Rows:
    base = [row_of("limit", 1.0), row_of("maskwise", 2.0)]
    return {row.impl: row for row in [*base, *rows]}


def test_a_target_holds_or_is_missed_or_was_not_measured() -> None:
    def line(*values: float) -> targets.Line:
        named = [(value, "a") for value in values]
        return targets.at_least("x", 0.9, targets.Measured(named, Counter()))

    assert line(0.5, 0.95).holds is False
    assert line(0.9).holds is True
    assert line().holds is None


def test_two_of_three_measurements_above_the_limit_miss_the_target() -> None:
    def line(first: float, *again: float) -> targets.Line:
        above = row_of("maskwise", 1.0, share=first, again=again)
        return targets.limit_line([rows_of(above)])

    assert line(1.09).holds is True
    assert line(1.3, 0.9, 1.05).holds is True
    assert line(1.3, 0.9, 1.2).holds is False
    assert line(1.3).holds is False, "not measured again"
    assert "1.30, 0.90, 1.20" in line(1.3, 0.9, 1.2).measured
    assert targets.limit_line([]).holds is None
    both = [rows_of(row_of("numpy", 3.0)), rows_of()]
    assert targets.limit_line(both).counts == "3 measured, 0 refused, 0 wrong, 1 skipped"


def notes(copy: float = 1.0, memory: int = 0) -> dict[str, Any]:
    return {
        "compile 3.13": {"first": 9e-6, "again": 1e-6, "count": 100},
        "memory": {"maskwise": memory, "onednn": 0, "processes": 3},
        "copies": {
            "limit, one thread": 30.0,
            "limit, all threads": 50.0,
            "numpy copyto": 40.0,
            extras.COPY_RATIO: copy,
            "pairs": 9,
        },
    }


def run_with_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, noted: dict[str, Any], *arguments: str
) -> int:
    """Runs scripts/bench with prepared measurements."""
    rows = list(rows_of(row_of("onednn", 900.0)).values())
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    monkeypatch.setattr(bench, "run_suite", lambda *_: rows)
    monkeypatch.setattr(extras, "measure_notes", lambda *_: noted)
    monkeypatch.setattr(sys, "argv", ["bench", "select", "--build", ".", *arguments])
    status: int = bench.main()
    return status


def test_a_missed_target_makes_status_1_and_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with_rows(monkeypatch, tmp_path, notes()) == 0
    assert capsys.readouterr().err == ""
    planted = notes(copy=1.2, memory=9 << 20)
    assert run_with_rows(monkeypatch, tmp_path, planted) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["missed", "missed"]
    assert "peak memory" in lines[0] and "9 MiB" in lines[0]
    assert run_with_rows(monkeypatch, tmp_path, planted, "--no-targets") == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"results.json", "machine.json"}


def test_cases_above_the_limit_are_measured_twice_more() -> None:
    requested: list[set[str]] = []

    def run(case: cases.Case, effort: object, only: set[str]) -> list[results.Row]:
        requested.append(only)
        return [row_of(impl, 1.0, share=1.0) for impl in only]

    two_cases = cases.shape_table()[:2]
    above = [row_of("maskwise", 1.0, share=1.2), row_of("numpy", 1.0, share=1.3)]
    measuring: Any = SimpleNamespace(run=run)
    bench.repeat_above_limit(measuring, two_cases, above, bench.effort_for("select", full=False))
    assert requested == [{"maskwise", "numpy"}] * 2, "only the case above the limit"
    assert [row.again for row in above] == [[1.0, 1.0]] * 2


def test_a_resting_worker_is_stopped_between_requests(tmp_path: Path) -> None:
    (worker.ROOT / "build/bench").mkdir(parents=True, exist_ok=True)
    code = "import sys\nfor line in sys.stdin: print('{}', flush=True)"
    spinning = worker.Worker("test", [sys.executable, "-c", code], {}, rests=True)
    for _ in range(3):
        assert spinning.ask(do="hello") == {}
        assert spinning.process
        pid, status = os.waitpid(spinning.process.pid, os.WUNTRACED)
        assert pid == spinning.process.pid and os.WIFSTOPPED(status)
    spinning.close()
    assert spinning.process is None
