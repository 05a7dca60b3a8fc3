"""The attention suite compares every answer, knows its own noise and names who is faster."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import attention_graphs
import attention_tables as tables
import pytest
from attention_client import claim
from attention_measured import Measured, interval
from attention_plain import Plain, has_bf16
from worker import ROOT

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
        found.add_turn({"onednn": [1000.0], "maskwise": [own], "torch mask": [900.0]})
    assert not found.wants("maskwise", 4)
    assert not found.wants("torch mask", 2)
    assert found.wants("before", 4)


def test_every_case_of_up_to_16_mi_elements_is_checked(
    suite: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = MagicMock()
    client.return_value.run.return_value = {"state": "FAILED", "reason": "tensor 6: [0]"}
    monkeypatch.setattr(suite, "Client", client)
    monkeypatch.setattr(suite, "Limit", MagicMock())
    runner = suite.Suite(MagicMock(peers=False), "3.13", tmp_path, tmp_path)
    states = []
    for length in (1024, 2048):
        file = tmp_path / f"{length}.json"
        graph = attention_graphs.plain(Plain("causal", 12, length, "f32"))
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


def by_peers(case: str, **medians: float) -> Measured:
    found = Measured(case, "3.13", versions={"torch": "2", "openvino": "3"})
    found.add_turn({"onednn": [9.0], "maskwise": [2.0]})
    found.add_turn({name.replace("_", " ", 1): [ms] for name, ms in medians.items()})
    return found


def test_faster_peers_are_printed(suite: ModuleType) -> None:
    first = by_peers("first", torch_attn_mask=3.0, torch_is_causal=1.6, openvino_causal=2.5)
    second = by_peers("second", torch_attn_mask=3.0, openvino_causal=2.5)
    second.faults["openvino attention_mask"] = "wrong: 3 of 8 elements differ"
    first.faults["openvino attention_mask"] = "refused: no mask"
    second.faults["onnxruntime"] = first.faults["onnxruntime"] = "refused: no bf16"
    second.drop("torch", "the process ended with status -11")
    assert first.faster() == {"torch": 1.25}
    third = by_peers("third")
    lines = suite.report.peers([first, second, third]).splitlines()
    assert lines[3:] == [
        "| first | 2.000 | 9.000 | 1.600 (is_causal) | 2.500 (causal) | torch 1.25x |",
        "| second | 2.000 | 9.000 | - | 2.500 (causal) | nobody |",
        "| third | 2.000 | 9.000 | - | - | not measured |",
        "openvino attention_mask: refused: no mask: first",
        "onnxruntime: refused: no bf16: first and 1 more",
        "openvino attention_mask: wrong: 3 of 8 elements differ: second",
        "torch: the process ended with status -11: second",
        "nobody is faster than Maskwise in 1 of 2 cases",
    ]


def timed(case: str, milliseconds: dict[str, float], lane: str = "3.13") -> Measured:
    found = Measured(case, lane, library="oneDNN 3", versions={"torch": "2"}, shares=[0.5])
    found.add_turn({name: [spent] for name, spent in milliseconds.items()})
    return found


def test_other_lanes_and_implementations_are_columns_of_the_table() -> None:
    taken = {"onednn": 9e3, "maskwise": 1.0, "before": 0.1, "torch mask": 3.0, "torch causal": 2.0}
    other_lane = timed("a", {"onednn": 3.0, "maskwise": 1.0}, "3.7")
    every = [timed("a", taken), other_lane, timed("b", {"onednn": 1.0})]
    versions, head, rows = tables.attention_table(every)
    assert rows == [["a", "9 s", "1 ms", "9000", "0.50", "100 us", "3.7: 3", "torch 2 ms"]]
    assert len(head) == len(rows[0]) and versions == "oneDNN 3, torch 2"


def test_attention_by_everybody() -> None:
    others = {"onednn": 9e3, "maskwise": 1e3, "openvino mask": 5e3, "onnxruntime Attention": 6e3}
    every = []
    for name in tables.PLAIN:
        form = "torch no mask" if name.startswith("no mask") else "torch attn_mask"
        own = {"engine mask": 2e3, "engine is_causal": 1e3, form: 3e3}
        every.append(timed(f"plain {name} f32", {**own, **others}))
    kept = {"engine mask": 1.0, "torch attn_mask": 250.0}
    every.append(timed("plain kept 5 % 1x12x2048 f32", kept))
    versions, _, rows = tables.plain_table(every)
    assert len(rows) == len(tables.PLAIN) and "torch 2" in versions
    assert rows[0][1:] == ["1 s", "3 s", "-", "5 s", "6 s", "9 s", "1 s", "3 times"]
    assert rows[-1][2] == "3 s"
    assert tables.kept_table(every)[2] == [["5", "1", "250", "-", "-"]]


def test_the_graph_of_a_case_holds_its_mask() -> None:
    def kinds(kind: str) -> list[str]:
        graph = attention_graphs.plain(Plain(kind, 2, 128, "bf16"))
        return [op["kind"] for op in graph["graph"]]

    assert "Select" not in kinds("no mask")
    assert "GenIndex" in kinds("causal")
    assert "GenIndex" not in kinds("causal and padding") and "Select" in kinds("block-sparse")
    assert Plain("padding", 2, 128, "f32").mask_shape == [1, 1, 1, 128]


def test_the_claim_is_read_from_what_maskwise_says() -> None:
    said = "x\nmaskwise,claim,100001,composite,8 rows of 4: select soft_max: operators 2 3\n"
    assert claim(said) == ({2, 3}, "8 rows of 4: select soft_max")
    assert claim("maskwise,load,3.13.2\n") == (set(), "")


def test_bf16_is_what_the_processor_says() -> None:
    assert has_bf16("flags\t: avx512f avx512_bf16 sse\n")
    assert not has_bf16("flags\t: avx512f avx512_bf16x\n")


# A peer with forms that are right, wrong in one way each, refused, and deadly.
PLANTED = """
import os
import numpy as np
from attention_operands import Attending

def answer(of):
    wide = lambda bits: (bits.astype(np.uint32) << 16).view(np.float32)
    q, k, v = ((x if of.dtype == "f32" else wide(x)).astype(np.float64) for x in (of.q, of.k, of.v))
    weights = np.exp(np.einsum("bhid,bhjd->bhij", q, k) * of.scale)
    if of.mask is not None:
        weights = weights * of.mask
    made = np.einsum("bhij,bhjd->bhid", weights, v) / weights.sum(-1)[..., None]
    made = np.ascontiguousarray(made.astype(np.float32))
    return made if of.dtype == "f32" else (made.view(np.uint32) >> 16).astype(np.uint16)

def changed(of, element):
    made = answer(of)
    made[0, 1, 2, 3] = element
    return made

def refuse():
    raise ValueError("no such\\nmask")

class Peer(Attending):
    version, threads = "1", 1
    def __init__(self, threads): pass
    def ways(self, of):
        read = lambda made: made
        unmasked = type("Unmasked", (), {**vars(of), "mask": None})
        return {
            "right": lambda: (lambda: answer(of), read),
            "off": lambda: (lambda: changed(of, 0x4000), read),
            "nan": lambda: (lambda: changed(of, 0x7fc0 if of.dtype == "bf16" else np.nan), read),
            "unmasked": lambda: (lambda: answer(unmasked), read),
            "short": lambda: (lambda: answer(of)[..., :-1].copy(), read),
            "refused": refuse,
        }
"""
ASK = """
import json, sys, tempfile
from pathlib import Path
from attention_measured import Measured
from attention_client import Peer
from attention_plain import Plain
from attention_problem import Problem, mask_of

found = {}
for dtype in ("f32", "bf16"):
    with tempfile.TemporaryDirectory() as folder:
        measured = Measured("case", "lane")
        problem = Problem(Plain("causal and padding", 2, 64, dtype), Path(folder))
        peer = Peer("planted", Path(sys.executable))
        ready = peer.load(problem, measured)
        taken = {name: len(take()) for name, take in ready.items()}
        measured.add_turn({"planted right": [1.0]})
        peer.process.kill()
        ready["planted right"]()
        found[dtype] = {"taken": taken, "faults": measured.faults, "samples": measured.samples}
kept = {kind: float(mask_of(Plain(kind, 1, 512, "f32")).mean())
        for kind in ("causal", "padding", "causal and padding", "block-sparse", "kept 25 %")}
print(json.dumps({**found, "kept": kept}))
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, ask_numpy: Callable[..., Any]) -> Any:  # noqa: ANN401
    folder = tmp_path_factory.mktemp("planted")
    (folder / "attention_planted.py").write_text(PLANTED)
    (ROOT / "build/bench").mkdir(parents=True, exist_ok=True)  # of the peers' logs
    return ask_numpy(ASK, folder=str(folder))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_wrong_peer_is_named_and_not_timed(planted: dict[str, Any], dtype: str) -> None:
    of = planted[dtype]
    assert list(of["taken"]) == ["planted right"] and of["taken"]["planted right"] > 0
    faults = of["faults"]
    for form in ("off", "nan"):
        assert faults[f"planted {form}"].startswith("wrong: 1 of 8192 elements differ by more")
        assert "the first at [0, 1, 2, 3]" in faults[f"planted {form}"]
    assert faults["planted unmasked"].startswith("wrong: ")
    assert faults["planted short"] == "wrong: 8064 elements instead of 8192"
    assert faults["planted refused"] == "refused: ValueError: no such mask"


def test_a_peer_that_dies_has_no_times(planted: dict[str, Any]) -> None:
    for dtype in ("f32", "bf16"):
        assert planted[dtype]["faults"]["planted"] == "the process ended with status -9"
        assert planted[dtype]["samples"] == {}


def test_masks_keep_what_their_names_say(planted: dict[str, Any]) -> None:
    kept = planted["kept"]
    assert kept["causal"] == (512 * 513 / 2) / 512**2
    assert kept["padding"] == 0.75
    assert kept["block-sparse"] == 0.125
    assert kept["kept 25 %"] == 0.25
    hidden = (128 * 129 / 2) / 512**2  # of the causal triangle, behind the padding
    assert kept["causal and padding"] == kept["causal"] - hidden
