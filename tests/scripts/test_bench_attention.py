"""The attention suite compares every answer and knows its own noise."""

import json
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import attention_graphs
import attention_tables as tables
import pytest
from attention_client import claim
from attention_measured import Measured, interval

BELOW = [0.96, 0.97, 0.97, 0.98, 0.98, 0.99]


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The suite without NumPy."""
    for name in ("ml_dtypes", "numpy"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    import attention

    return attention


def measured(ratios: list[float], case: str = "any") -> Measured:
    found = Measured(case, "3.13")
    for ratio in ratios:
        found.add_turn({"onednn": [ratio], "maskwise": [1.0]})
    return found


def test_an_interval_holds_the_median_as_coin_tosses_say() -> None:
    six, nine = [float(n) for n in range(6)], [float(n) for n in range(9)]
    assert interval(six) == (0.0, 5.0)
    assert interval(nine[::-1]) == (1.0, 7.0)
    assert interval([0.9, 1.1]) == (0.9, 1.1)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.97] * 6, "MISSED"),  # always by 3 %: no noise excuses it
        (BELOW, "MISSED"),
        ([*BELOW[:5], 1.01], "holds"),
        ([*BELOW, 0.98, 0.99, 1.01], "MISSED"),  # one good pair of nine
        ([0.9, 0.9], "MISSED"),
        ([3.0, 3.0], "holds"),
    ],
)
def test_never_slower_means_1_within_the_noise_of_the_run(
    suite: ModuleType, ratios: list[float], verdict: str
) -> None:
    assert suite.report.verdict(measured(ratios)) == verdict


def test_one_pair_of_fresh_processes_that_is_not_slower_excuses(suite: ModuleType) -> None:
    found = measured([0.5] * 6)
    found.again = [0.6, 0.55]
    assert suite.report.verdict(found) == "MISSED"
    assert "0.60, 0.55 with fresh processes" in suite.report.failures([found], True)[0]
    found.again.append(1.0)
    assert suite.report.verdict(found) == "holds"


class Pairs:
    """Clients by which oneDNN takes 1 ms; Maskwise's time is the next of the list."""

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


def test_what_is_slower_is_measured_again_until_it_is_not(suite: ModuleType) -> None:
    pairs, found = Pairs(suite, [2.0, 1.25, 1.0, 9.0]), measured([0.5] * 6)
    pairs.suite.measure_again(MagicMock(), found)
    assert found.again == [0.5, 0.8, 1.0]
    assert pairs.loads[:4] == ["maskwise", "onednn", "onednn", "maskwise"]


def test_what_is_always_slower_is_missed(suite: ModuleType) -> None:
    pairs, found = Pairs(suite, [1.25] * 9), measured([0.5] * 6)
    pairs.suite.measure_again(MagicMock(), found)
    assert found.again == [0.8] * suite.PAIRS
    assert suite.report.verdict(found) == "MISSED"


def test_what_is_not_slower_is_not_measured_again(suite: ModuleType) -> None:
    pairs, found = Pairs(suite, []), measured([1.0] * 6)
    pairs.suite.measure_again(MagicMock(), found)
    assert not pairs.loads


def test_a_gain_that_is_asked_for_has_no_noise(suite: ModuleType) -> None:
    case = "MHA-GPT-inf-fp32-bs1"
    assert suite.report.verdict(measured([3.9] * 3 + [4.5] * 2, case)) == "MISSED"
    assert suite.report.verdict(measured([4.1] * 3 + [3.5] * 2, case)) == "holds"


def test_what_is_slow_is_measured_until_maskwise_is_shown_not_to_be_slower() -> None:
    found = Measured("slow", "3.13")
    for turn, own in enumerate([1010.0, 1020.0, 1030.0, 990.0]):
        assert found.wants("maskwise", turn) and found.wants("onednn", turn)
        found.add_turn({"onednn": [1000.0], "maskwise": [own]})
    assert not found.wants("maskwise", 4)
    assert found.wants("before", 4)


def test_every_case_of_up_to_16_mi_elements_is_checked(
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


def failing(suite: ModuleType, found: list[Measured], *options: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "run_lane", lambda *_: found)
        patch.setattr(suite, "keep_tables", MagicMock())
        patch.setattr(suite, "machine_facts", dict)
        patch.setattr(suite.report, "draw", MagicMock())
        base = ["attention", "--build=b", "--programs=p", "--lane=3.13"]
        patch.setattr(sys, "argv", [*base, *options])
        status: int = suite.main()
        return status


def test_a_missed_target_and_a_wrong_answer_fail(
    suite: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    good, slow = measured([2.0] * 6), measured([0.9] * 6, "slow")
    wrong = Measured("bad", "3.13", state="wrong: tensor 6: [0]")
    assert failing(suite, [good]) == 0
    assert failing(suite, [good, slow]) == 1
    said = capsys.readouterr().out
    assert "missed: slow on 3.13: 0.90 times" in said
    assert "1 of 2 hold; 2 cases in all" in said
    assert failing(suite, [good, slow], "--no-targets") == 0
    assert failing(suite, [good, wrong], "--no-targets") == 1
    assert "bad on 3.13: wrong: tensor 6: [0]\n" in capsys.readouterr().out


def test_nothing_measured_fails(suite: ModuleType) -> None:
    gone = Measured("gone", "3.13", state="the client ended with status 1")
    half = Measured("half", "3.13", samples={"onednn": [2.0]})
    for found in ([], [gone], [half]):
        assert failing(suite, found) == 1


def timed(case: str, milliseconds: dict[str, float], lane: str = "3.13") -> Measured:
    found = Measured(case, lane, library="oneDNN 3", shares=[0.5])
    found.add_turn({name: [spent] for name, spent in milliseconds.items()})
    return found


def test_other_lanes_are_a_column_of_the_table() -> None:
    taken = {"onednn": 9e3, "maskwise": 1.0, "before": 0.1}
    other_lane = timed("a", {"onednn": 3.0, "maskwise": 1.0}, "3.7")
    every = [timed("a", taken), other_lane, timed("b", {"onednn": 1.0})]
    versions, head, rows = tables.attention_table(every)
    assert rows == [["a", "9 s", "1 ms", "9000", "0.50", "100 us", "3.7: 3"]]
    assert len(head) == len(rows[0]) and versions == "oneDNN 3"


def test_the_claim_is_read_from_what_maskwise_says() -> None:
    said = "x\nmaskwise,claim,100001,composite,8 rows of 4: select soft_max: operators 2 3\n"
    assert claim(said) == ({2, 3}, "8 rows of 4: select soft_max")
    assert claim("maskwise,load,3.13.2\n") == (set(), "")
