"""Tests the attention suite: its verdicts, repeated measurements and checks of results."""

import json
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import attention_graphs
import pytest
from attention_measured import Measured

BELOW = [0.96, 0.97, 0.97, 0.98, 0.98, 0.99]


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Returns the suite with mocks of ml_dtypes and numpy."""
    for name in ("ml_dtypes", "numpy"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    import attention

    return attention


def measured(ratios: list[float], case: str = "any") -> Measured:
    result = Measured(case, "3.13")
    for ratio in ratios:
        result.add_turn({"onednn": [ratio], "maskwise": [1.0]})
    return result


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.97] * 6, "MISSED"),  # all pairs are 3 % slower
        (BELOW, "MISSED"),
        ([*BELOW[:5], 1.01], "holds"),
        ([*BELOW, 0.98, 0.99, 1.01], "MISSED"),  # one pair of nine is faster
        ([0.9, 0.9], "MISSED"),
        ([3.0, 3.0], "holds"),
    ],
)
def test_a_ratio_below_1_misses_unless_the_noise_explains_it(
    suite: ModuleType, ratios: list[float], verdict: str
) -> None:
    assert suite.report.verdict(measured(ratios)) == verdict


class Pairs:
    """A suite whose clients return times: 1 for oneDNN, the next of `times` for Maskwise."""

    def __init__(self, suite: ModuleType, times: list[float]) -> None:
        self.suite = suite.Suite.__new__(suite.Suite)
        self.loads: list[str] = []
        self.suite.lane = "3.13"
        self.suite.end_clients = lambda: None
        self.suite.load = lambda name, *_: self.loads.append(name)
        steady, changing = MagicMock(), MagicMock()
        steady.time = lambda: [1.0]
        changing.time = lambda: [times[len(self.loads) // 2 - 1]]
        self.suite.clients = {"onednn": steady, "maskwise": changing}


def test_a_slower_case_is_measured_again_until_it_is_not_slower(suite: ModuleType) -> None:
    pairs, result = Pairs(suite, [2.0, 1.25, 1.0, 9.0]), measured([0.5] * 6)
    pairs.suite.measure_again(MagicMock(), result)
    assert result.again == [0.5, 0.8, 1.0]
    assert pairs.loads[:4] == ["maskwise", "onednn", "onednn", "maskwise"]


def test_a_case_that_is_always_slower_is_missed(suite: ModuleType) -> None:
    pairs, result = Pairs(suite, [1.25] * 9), measured([0.5] * 6)
    pairs.suite.measure_again(MagicMock(), result)
    assert result.again == [0.8] * suite.PAIRS
    assert suite.report.verdict(result) == "MISSED"


def test_only_cases_of_up_to_16_mi_elements_are_checked(
    suite: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = MagicMock()
    client.return_value.run.return_value = {"state": "FAILED", "reason": "tensor 6: [0]"}
    monkeypatch.setattr(suite, "Client", client)
    monkeypatch.setattr(suite, "Limit", MagicMock())
    runner = suite.Suite(MagicMock(), "3.13", tmp_path)
    states = []
    for length in (1024, 2048):
        file = tmp_path / f"{length}.json"
        graph = attention_graphs.resized(attention_graphs.middle(is_causal=True), {1024: length})
        file.write_text(json.dumps(graph))
        states.append(runner.check(attention_graphs.GraphCase("sequence", file, 1 << 20)))
    assert states == ["wrong: tensor 6: [0]", ""]


def failing(suite: ModuleType, result: list[Measured], *options: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "run_lane", lambda *_: result)
        patch.setattr(suite, "save_tables", MagicMock())
        patch.setattr(suite, "machine_facts", dict)
        base = ["attention", "--build=b", "--programs=p", "--lane=3.13"]
        patch.setattr(sys, "argv", [*base, *options])
        status: int = suite.main()
        return status


def test_a_missed_target_and_a_wrong_result_fail(
    suite: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    good, slow = measured([2.0] * 6), measured([0.9] * 6, "slow")
    wrong = Measured("bad", "3.13", state="wrong: tensor 6: [0]")
    assert failing(suite, [good]) == 0
    assert failing(suite, [good, slow]) == 1
    output = capsys.readouterr().out
    assert "missed: slow on 3.13: 0.90 times" in output
    assert "1 of 2 targets hold; 2 cases in all" in output
    assert failing(suite, [good, slow], "--no-targets") == 0
    assert failing(suite, [good, wrong], "--no-targets") == 1
    assert "bad on 3.13: wrong: tensor 6: [0]\n" in capsys.readouterr().out


def test_nothing_measured_fails(suite: ModuleType) -> None:
    gone = Measured("gone", "3.13", state="the client ended with status 1")
    half = Measured("half", "3.13", samples={"onednn": [2.0]})
    for result in ([], [gone], [half]):
        assert failing(suite, result) == 1
