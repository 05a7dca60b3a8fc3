"""The comparison of instruction sets tells what is slower than a lesser one, twice. Its tables are
of whole runs only, against the numbers to reach."""

from argparse import Namespace
from pathlib import Path
from unittest.mock import MagicMock

import isa
import pytest
import targets
from cases import Case, dense
from ways import Limit
from worker import Worker

SHAPE = dense((2, 3))
CASE = Case("sweep", "a", SHAPE, SHAPE, SHAPE, SHAPE)


def way(name: str, *seconds: float, state: str = "right") -> Worker:
    """A client that answers one time for each comparison."""
    answers = iter(seconds)
    now = 0.0

    def ask(do: str, **_: object) -> dict[str, object]:
        nonlocal now
        if do == "load":
            now = next(answers)
            return {"state": state, "plan": "nest=2x3"}
        return {"samples": [now]}

    made = MagicMock(spec=Worker, impl=name)
    made.ask.side_effect = ask
    return made


def compared(*ways: Worker, with_limit: bool = False) -> list[isa.Compared]:
    """The limit always takes half a second."""
    names = [each.impl for each in ways]
    limit = MagicMock(spec=Limit)
    limit.time_best.return_value = [0.5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isa, "make_data", lambda *_: (600, 40))
        return isa.run([CASE], list(ways), isa.pairs_of(names, []), limit, with_limit)


def test_a_set_is_compared_with_each_lesser_one_and_other_builds() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "old")]
    assert isa.pairs_of(["a", "b", "c"], ["old"]) == pairs


def test_what_is_slower_once_is_noise() -> None:
    found = compared(way("wide", 2.0, 1.0), way("less", 1.0, 1.0))
    assert found[0].ratios == {"wide / less": 1.0}
    assert not isa.is_slower(found[0])


def test_what_is_slower_twice_is_told() -> None:
    found = compared(way("wide", 2.0, 1.5), way("less", 1.0, 1.0))
    assert isa.is_slower(found[0])
    assert isa.summary(found) == [
        "wide / less: median 1.500, least 1.50, most 1.50; 1 of 1 above 1.05"
    ]


def test_the_limit_is_compared_where_it_is_asked_for() -> None:
    found = compared(way("wide", 1.0), way("less", 2.0), with_limit=True)[0]
    assert found.fractions == {"wide": 0.5, "less": 0.25}
    assert (found.bytes, found.plan, found.cond) == (640, "nest=2x3", "2x3")
    assert not compared(way("wide", 1.0))[0].fractions


def test_a_wrong_answer_ends_it() -> None:
    with pytest.raises(RuntimeError, match="sweep a: less is wrong"):
        compared(way("wide", 1.0), way("less", 1.0, state="wrong"))


NAMES = ["avx512", "avx2"]
ASKED = {"suites": ["select", "sweep"], "only": "", "every": 1, "limit": True}
PLAN = "nest=9x8 box=4x8 tile=4x8 grid=3 cond=unit src_0=step src_1=zero dst=unit kernel=select_x32"


@pytest.fixture(autouse=True)
def one_mebibyte_of_l2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "core_cache_bytes", lambda: 1 << 20)


def found(suite: str, case: str, share: float, lesser: float, size: int = 2 << 20) -> isa.Compared:
    ratios = {"avx512 / avx2": lesser / share}
    fractions = {"avx512": share, "avx2": lesser}
    made = isa.Compared(suite, case, "72", "72", "-", "f32", "random", bytes=size, plan=PLAN)
    made.seconds = {"avx512": 1.0, "avx2": 1.0}
    made.ratios, made.fractions = ratios, fractions
    return made


def test_a_row_for_each_set_says_what_is_missed() -> None:
    cases = [found("select", "a", 0.95, 0.95), found("select", "b", 0.92, 0.4)]
    cases += [found("select", "small", 0.1, 0.1, 1 << 20), found("sweep", "3", 0.9, 0.3)]
    cases += [found("select", "c", 0.97, 0.97, 200_000_000)]
    _, head, rows = isa.isa_table(cases, NAMES, "avx512")
    assert head[1] == "select, beyond L2 (median 0.9, least 0.5)"
    native, emulated = rows
    assert native == [
        "AVX-512, native",
        "median 0.95, least 0.92 (b f32 random) of 3",
        "median 0.97, least 0.97 (c f32 random) of 1",
        "median 0.90, p5 0.90, least 0.90 (3 f32 random) of 1",
        "AVX2: median 1.00, most 1.00 (select a f32 random), 0 above 1.05",
        "holds",
    ]
    assert emulated[0] == "AVX2, emulated: `MASKWISE_MAX_ISA=avx2`"
    assert emulated[-2:] == ["-", "MISSED: select least, sweep median, sweep p5"]


def test_a_set_slower_than_a_lesser_one_is_missed() -> None:
    cases = [found("select", "a", 0.9, 0.99), found("sweep", "3", 0.9, 0.9)]
    native = isa.isa_table(cases, NAMES, "avx512")[2][0]
    assert native[4].endswith("most 1.10 (select a f32 random), 1 above 1.05")
    assert native[-1] == "MISSED: slower than AVX2"


def test_the_slowest_of_any_set_stand_side_by_side() -> None:
    cases = [found("sweep", str(i), 0.5 + i / 100, 0.9 - i / 100) for i in range(30)]
    _, head, rows = isa.slowest_table(cases, NAMES)
    assert head[-2:] == ["AVX-512", "AVX2"]
    assert [row[0] for row in rows[:2]] == ["sweep 0 f32 random", "sweep 1 f32 random"]
    assert len(rows) == 2 * isa.SLOWEST
    plan = "4x8 of 9x8: unit step zero unit, select_x32"
    assert rows[0][1:] == ["72, 72, -", "2.097", plan, "0.50", "0.90"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"suites": ["select"]}, "suite sweep was not measured"),
        ({"only": "13"}, "of some cases: --only '13' --every 1"),
        ({"every": 5}, "--every 5"),
        ({"limit": False}, "measured without --limit"),
    ],
)
def test_a_part_is_no_table(
    asked: dict[str, object],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(isa, "RESULTS", tmp_path)
    isa.keep_tables([found("select", "a", 0.9, 0.9)], NAMES, Namespace(**{**ASKED, **asked}))
    assert why in capsys.readouterr().out and not list(tmp_path.iterdir())
