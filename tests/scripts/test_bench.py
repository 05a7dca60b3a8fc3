"""The benchmark's cases are what their names say, and its file keeps what was measured."""

import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from types import ModuleType
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/suites"))
import attention_graphs
import cases
import results
import targets
from attention_measured import Measured

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


def test_a_miss_is_called_one_and_nothing_measured_is_no_pass() -> None:
    assert targets.at_least("x", 0.9, [(0.5, "a"), (0.95, "b")]).holds is False
    assert targets.at_least("x", 0.9, [(0.9, "a")]).holds is True
    assert targets.at_least("x", 0.9, []).holds is None


def test_without_onednns_own_cases_attention_has_the_harness_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_graphs, "CASES", tmp_path / "missing")
    found = attention_graphs.files()
    assert {"gpt", "bert", "causal", "masked_bf16"} <= {case.name for case in found}
    assert attention_graphs.sequences(full=False, folder=tmp_path) == []
    for case in [*found, *attention_graphs.middles(tmp_path)]:
        assert "Select" in {op["kind"] for op in case.load()["graph"]}, case.name


@pytest.fixture
def attention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The suite without its pictures, its data, its results and the facts of the machine."""
    for name in ("matplotlib", "matplotlib.pyplot", "ml_dtypes", "numpy"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    import attention

    monkeypatch.setattr(attention, "RESULTS", tmp_path)
    monkeypatch.setattr(attention, "machine_facts", lambda: {"machine": "", "began": ""})
    monkeypatch.setattr(sys, "argv", ["attention", "--build=b", "--programs=p", "--lane=3.13"])
    return attention


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([], 1),
        ([Measured("gone", "3.13", state="the client ended with status 1")], 1),
        ([Measured("half", "3.13", samples={"onednn": [2.0]})], 1),
        ([Measured("all", "3.13", ratios=[2.0])], 0),
    ],
)
def test_attention_that_measured_nothing_fails(
    attention: ModuleType, monkeypatch: pytest.MonkeyPatch, found: list[Measured], status: int
) -> None:
    monkeypatch.setattr(attention, "run_lane", lambda *_: found)
    assert attention.main() == status
