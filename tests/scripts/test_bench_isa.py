"""The comparison of instruction sets reports a case if a higher set is slower twice."""

from unittest.mock import MagicMock

import isa
import pytest
from cases import Case, dense
from ways import Limit
from worker import Worker

SHAPE = dense((2, 3))
CASE = Case("sweep", "a", SHAPE, SHAPE, SHAPE, SHAPE)


def way(name: str, *seconds: float, state: str = "right") -> Worker:
    """A worker process that reports the next of `seconds` for each comparison."""
    answers = iter(seconds)
    now = 0.0

    def ask(do: str, **_: object) -> dict[str, object]:
        nonlocal now
        if do == "load":
            now = next(answers)
            return {"state": state, "plan": "nest=2x3"}
        return {"samples": [now]}

    worker = MagicMock(spec=Worker, impl=name)
    worker.ask.side_effect = ask
    return worker


def compared(*ways: Worker, with_limit: bool = False) -> list[isa.Compared]:
    names = [worker.impl for worker in ways]
    limit = MagicMock(spec=Limit)
    limit.time_best.return_value = [0.5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isa, "make_data", lambda *_: (600, 40))
        return isa.run([CASE], list(ways), isa.pairs_of(names, []), limit, with_limit)


def test_slower_once_is_noise() -> None:
    result = compared(way("wide", 2.0, 1.0), way("less", 1.0, 1.0))
    assert result[0].ratios == {"wide / less": 1.0}
    assert not isa.is_slower(result[0])


def test_slower_twice_is_reported() -> None:
    result = compared(way("wide", 2.0, 1.5), way("less", 1.0, 1.0))
    assert isa.is_slower(result[0])
    assert isa.summary(result) == [
        "wide / less: median 1.500, least 1.50, most 1.50; 1 of 1 above 1.05"
    ]


def test_the_limit_is_compared_on_request() -> None:
    result = compared(way("wide", 1.0), way("less", 2.0), with_limit=True)[0]
    assert result.fractions == {"wide": 0.5, "less": 0.25}
    assert (result.bytes, result.plan, result.cond) == (640, "nest=2x3", "2x3")
    assert not compared(way("wide", 1.0))[0].fractions


def test_a_wrong_result_ends_the_comparison() -> None:
    with pytest.raises(RuntimeError, match="sweep a: less is wrong"):
        compared(way("wide", 1.0), way("less", 1.0, state="wrong"))
