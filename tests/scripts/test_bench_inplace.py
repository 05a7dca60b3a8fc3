"""What a Select in place writes, next to its time: from the answers of three processes."""

from unittest.mock import MagicMock

import inplace
import pytest
from worker import Worker

COUNTS = {"dst": 1000, "changed": 100, "written": 250}


def process(name: str, seconds: float, state: str = "right") -> Worker:
    made = MagicMock(spec=Worker, impl=name)
    made.ask.side_effect = lambda do, **_: {
        "load": {"state": state},
        "time": {"samples": [seconds]},
        "count": COUNTS,
    }[do]
    return made


def measured(state: str = "right") -> tuple[list[str], list[Worker]]:
    workers = [process("in place", 1e-3), process("apart", 4e-3), process("counter", 9.0, state)]
    return inplace.measure(inplace.cases()[0], workers[:2], workers[2], "folder"), workers


def test_counts_and_times_of_the_same_case() -> None:
    row, workers = measured()
    assert row == ["nothing", "f32", "0.0 MB", "10.0%", "25.0%", "1 ms", "4 ms", "0.25"]
    assert len(inplace.HEAD) == len(row)
    asked = [worker.ask.call_args_list[0].kwargs["case"] for worker in workers]  # type: ignore[attr-defined]
    assert [case.pop("in_place") for case in asked] == [True, False, True]
    assert asked[0] == asked[1] == asked[2]


def test_a_wrong_answer_ends_it() -> None:
    with pytest.raises(RuntimeError, match="nothing f32: counter is wrong"):
        measured(state="wrong")
