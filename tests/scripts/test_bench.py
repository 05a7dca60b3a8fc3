"""The benchmark's cases are what their names say, and its file keeps what was measured."""

import os
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import attention_graphs
import bench
import cases
import extras
import measure
import pictures
import pytest
import results
import targets
import worker
from hypothesis import given
from hypothesis import strategies as st

extents = st.lists(st.integers(1, 9), max_size=5).map(tuple)


@given(extents, st.randoms(), st.integers(0, 3))
def test_a_layout_gives_every_element_a_place_of_its_own(
    dims: tuple[int, ...], random: Random, padding: int
) -> None:
    order = list(range(len(dims)))
    random.shuffle(order)
    operand = cases.laid_out(dims, order, padding)
    places = {0}
    for extent, stride in zip(operand.dims, operand.strides, strict=True):
        places = {place + i * stride for place in places for i in range(extent)}
    assert len(places) == operand.distinct() == len(list(places))
    count = 1
    for extent in dims:
        count *= extent
    assert len(places) == count


def test_an_operand_reads_back() -> None:
    assert cases.parse_operand("-") == cases.Operand((), ())
    assert cases.parse_operand("2x3") == cases.Operand((2, 3), (3, 1))
    assert cases.parse_operand("2x3*ba") == cases.Operand((2, 3), (1, 2))
    assert str(cases.parse_operand("2x3*ba")) == "2x3@1x2"


def test_every_row_of_the_table_is_a_case_that_broadcasts() -> None:
    table = cases.shape_table()
    assert len({case.name for case in table}) == len(table) >= 29
    for case in table:
        shape = cases.broadcast(case.src_0.dims, case.src_1.dims)
        assert shape == case.dst.dims == cases.broadcast(shape, case.cond.dims), case.name


def test_types_are_those_that_the_graph_api_lacks() -> None:
    found = cases.cases_of("types", full=False)
    assert {case.dtype for case in found} == {"i64", "bool"}
    assert {case.suite for case in found} == {"types"}
    moved = {(case.name, case.dtype): case.bytes_apart() for case in found}
    assert moved["20", "i64"] == 4 + 3 * 4 * 8
    assert moved["20", "bool"] == 4 + 3 * 4


def test_the_sweep_is_the_same_each_time_and_larger_than_the_caches() -> None:
    for index in range(40):
        case = cases.sweep_case(index)
        assert case == cases.sweep_case(index)
        assert case.bytes_apart() >= cases.beyond_cache_bytes()
        assert len(case.dst.dims) <= 6
        shape = cases.broadcast(case.src_0.dims, case.src_1.dims)
        assert shape == case.dst.dims == cases.broadcast(shape, case.cond.dims)


def test_the_version_of_the_results_is_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", measure.maskwise_version())


def measured(suite: str, seconds: float) -> list[results.Row]:
    case = replace(cases.shape_table()[0], suite=suite)
    rows = [
        results.make_row(case, "limit", "one thread", [0.5, 1.0, 9.0], 1),
        results.make_row(case, "maskwise", "1", [seconds], 2),
        results.make_row(case, "numpy", "2: wrong answer", [], 1),
    ]
    results.complete(rows, 640, [0.1, 1.0 / seconds, 9.0])
    return rows


def test_a_suite_measured_again_replaces_its_rows_only(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results.keep(file, "select", measured("select", 4.0))
    results.keep(file, "small", measured("small", 4.0))
    every = results.keep(file, "select", measured("select", 2.0))
    assert results.load(file) == every
    assert [(row.suite, row.limit_fraction) for row in every if row.impl == "maskwise"] == [
        ("small", 0.25),
        ("select", 0.5),
    ]
    assert [row.seconds_median for row in every if row.impl == "numpy"] == [None, None]


def row_of(
    impl: str,
    seconds: float | None,
    failure: str = "",
    share: float = 0.9,
    again: tuple[float, ...] = (),
) -> results.Row:
    version = f"1: {failure}" if failure else "1"
    case, samples = cases.shape_table()[0], [seconds] if seconds else []
    made = results.make_row(case, impl, version, samples, 1)
    return replace(made, bytes=1 << 30, limit_fraction=share, again=list(again))


def rows_of(*rows: results.Row) -> results.Rows:
    every = [row_of("limit", 1.0), row_of("maskwise", 2.0), *rows]
    return {row.impl: row for row in every}


def test_a_miss_is_called_one_and_nothing_measured_is_no_pass() -> None:
    def line(*values: float) -> targets.Line:
        named = [(value, "a") for value in values]
        return targets.at_least("x", 0.9, targets.Measured(named, Counter()))

    assert line(0.5, 0.95).holds is False
    assert line(0.9).holds is True
    assert line().holds is None


def test_a_line_says_of_how_many_it_speaks() -> None:
    every = [
        rows_of(row_of("numpy", 12.0)),
        rows_of(row_of("numpy", 14.0)),
        rows_of(row_of("numpy", None, "wrong answer")),
        rows_of(row_of("numpy", None, "has no bf16")),
        rows_of(row_of("numpy", None, "the process ended with status -11")),
        rows_of(),
    ]
    measured = targets.times_as_fast(every, "numpy")
    line = targets.at_least("x", 5, measured, "x")
    assert [value for value, _ in measured.values] == [6, 7]
    assert line.of == "2 measured, 1 refused, 1 wrong, 1 skipped, 1 died"
    assert line.holds is True
    assert line.of in line.cells()


def test_what_was_not_measured_is_told_and_left_out_of_the_documents() -> None:
    measured = targets.at_most("x", 1, 0.5, "us", "of 3")
    missing = targets.at_most("sweep", 1, None, "us", "-")
    versions, head, rows = targets.measured_table([rows_of()], [measured, missing])
    assert (versions, head[-1]) == ("Maskwise 1", "verdict")
    assert rows == [["x", "1 us", "0.5 us", "of 3", "holds"]]
    told = targets.report([rows_of()], [measured, missing], {"machine": "m", "began": "b"})
    assert "\nm; b\nMaskwise 1\n\n| what |" in told and "| sweep | 1 us | - | - | not meas" in told


def test_onednn_alone_is_its_fastest_form() -> None:
    active = row_of("onednn 3.7 active", 4.0)
    refused = row_of("onednn", None, "has no f16")
    measured = targets.times_as_fast(
        [rows_of(row_of("onednn", 6.0), active), rows_of(refused, active), rows_of(refused)],
        "onednn",
    )
    assert [value for value, _ in measured.values] == [2, 2]
    assert measured.text() == "2 measured, 1 refused, 0 wrong, 0 skipped"


def test_above_the_limit_counts_when_it_is_so_twice_in_three() -> None:
    def line(first: float, *again: float) -> targets.Line:
        above = row_of("maskwise", 1.0, share=first, again=again)
        return targets.limit_line([rows_of(above)])

    assert line(1.09).holds is True
    assert line(1.3, 0.9, 1.05).holds is True
    assert line(1.3, 0.9, 1.2).holds is False
    assert line(1.3).holds is False, "never measured again"
    assert "1.30, 0.90, 1.20" in line(1.3, 0.9, 1.2).measured
    assert targets.limit_line([]).holds is None
    both = [rows_of(row_of("numpy", 3.0)), rows_of()]
    assert targets.limit_line(both).of == "3 measured, 0 refused, 0 wrong, 1 skipped"


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


def test_a_copy_of_numpys_that_beats_the_limits_is_a_miss() -> None:
    assert targets.copy_line(notes(1.09)["copies"]).holds is True
    assert targets.copy_line(notes(1.11)["copies"]).holds is False


def end_of_a_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, noted: dict[str, Any], *arguments: str
) -> int:
    """Of scripts/bench, with everything measured already."""
    monkeypatch.setattr(pictures, "draw_all", lambda *_: None)  # Matplotlib may be missing
    rows = list(rows_of(row_of("onednn", 900.0)).values())
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    monkeypatch.setattr(bench, "run_suite", lambda *_: rows)
    monkeypatch.setattr(extras, "measure_notes", lambda *_: noted)
    monkeypatch.setattr(sys, "argv", ["bench", "select", "--build", ".", *arguments])
    status: int = bench.main()
    return status


def test_a_missed_target_ends_the_run_with_one_and_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of_a_run(monkeypatch, tmp_path, notes()) == 0
    assert capsys.readouterr().err == ""
    planted = notes(copy=1.2, memory=9 << 20)
    assert end_of_a_run(monkeypatch, tmp_path, planted) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in told] == ["missed", "missed"]
    assert "peak memory" in told[0] and "9 MiB" in told[0]
    assert end_of_a_run(monkeypatch, tmp_path, planted, "--no-targets") == 0
    left = {path.stem for path in tmp_path.iterdir()}
    assert {"select", "targets", "model", "results", "select.stamp"} <= left


def test_what_is_above_the_limit_is_measured_twice_more() -> None:
    asked: list[set[str]] = []

    def run(case: cases.Case, effort: object, only: set[str]) -> list[results.Row]:
        asked.append(only)
        return [row_of(impl, 1.0, share=1.0) for impl in only]

    every = cases.shape_table()[:2]
    above = [row_of("maskwise", 1.0, share=1.2), row_of("numpy", 1.0, share=1.3)]
    measuring: Any = SimpleNamespace(run=run)
    bench.repeat_above_limit(measuring, every, above, bench.effort_for("select", full=False))
    assert asked == [{"maskwise", "numpy"}] * 2, "the other case is not"
    assert [row.again for row in above] == [[1.0, 1.0]] * 2


def test_lanes_on_openmp_are_found_by_what_the_lanes_need() -> None:
    described = """\
lane unstable oneDNN 3.12.1  /d/unstable OMP_WAIT_POLICY=passive
lane 3.13  oneDNN 3.13.2  /d/3.13 OCL_ICD_FILENAMES=/d/libintelocl.so
lane 3.7   oneDNN 3.7.2   /d/3.7 OMP_WAIT_POLICY=passive
"""
    assert worker.openmp_lanes(described) == ["3.7", "unstable"]


def test_onednn_alone_is_the_lanes_and_the_newest_native_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "openmp_lanes", lambda _: ["3.7", "3.12"])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bench_client-3.7").touch()

    def names(lane: str) -> list[str]:
        return [found.impl for found in worker.onednn_alone(tmp_path, lane)]

    assert names("3.13") == ["onednn", "onednn 3.7 passive", "onednn 3.7 active"]
    assert names("3.7") == ["onednn 3.7 passive", "onednn 3.7 active"]
    (tmp_path / "bin/bench_client-3.12").touch()
    assert names("3.13") == ["onednn", "onednn 3.12 passive", "onednn 3.12 active"]
    for found in worker.onednn_alone(tmp_path, "3.13"):
        assert found.environment.get("OMP_WAIT_POLICY", "") in found.impl
        assert found.rests == found.impl.endswith("active")


def test_a_process_that_spins_rests_between_its_answers(tmp_path: Path) -> None:
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


def test_without_onednns_own_cases_attention_has_the_harness_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_graphs, "CASES", tmp_path / "missing")
    found = attention_graphs.files()
    assert {"gpt", "bert", "causal", "masked_bf16"} <= {case.name for case in found}
    assert attention_graphs.sequences(full=False, folder=tmp_path) == []
    for case in [*found, *attention_graphs.middles(tmp_path)]:
        assert "Select" in {op["kind"] for op in case.load()["graph"]}, case.name
