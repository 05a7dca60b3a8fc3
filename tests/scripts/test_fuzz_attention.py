"""What excuses a wrong result of a random attention graph, and what does not."""

import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchdnn"))
import fuzz_attention as fuzz


def result(state: str, *wrong: int, used: float = 0.0) -> fuzz.Result:
    return {"state": state, "reason": "", "wrong_tensors": [*wrong], "allowance_used": used}


WRONG = result("FAILED", 9, used=3.0)
ABORTED = result("ABORTED")
KNOWN = fuzz.KNOWN_FAULTS[0]


def test_the_same_tensor_wrong_alone_for_a_known_reason_is_excused() -> None:
    elsewhere, further = result("FAILED", 7, used=3.0), result("FAILED", 7, 9, used=3.0)
    assert fuzz.fault_of(WRONG, WRONG, KNOWN) == ""
    assert fuzz.fault_of(WRONG, further, KNOWN) == ""
    assert fuzz.fault_of(further, WRONG, KNOWN) != ""
    assert fuzz.fault_of(result("FAILED"), WRONG, KNOWN) != ""
    assert fuzz.fault_of(result("PASSED"), WRONG, KNOWN) == ""
    assert fuzz.fault_of(WRONG, elsewhere, KNOWN) != ""
    assert fuzz.fault_of(WRONG, result("PASSED"), None) != ""
    assert fuzz.fault_of(result("PASSED"), WRONG, None) != ""


def test_an_end_of_the_process_is_never_excused() -> None:
    for known in (None, KNOWN):
        for alone in (ABORTED, WRONG, result("PASSED")):
            assert fuzz.fault_of(ABORTED, alone, known) != ""
    assert fuzz.known_fault(graph_with_a_sum("bf16"), ABORTED, KNOWN.minor) is None
    assert fuzz.fault_of(result("PASSED"), ABORTED, None) != ""


def test_a_result_near_the_bound_is_told() -> None:
    assert fuzz.fault_of(result("PASSED", used=0.9), result("PASSED", used=0.2), None) != ""
    assert fuzz.fault_of(result("PASSED", used=0.9), result("PASSED", used=0.9), None) == ""


def graph_with_a_sum(dtype: str) -> fuzz.Graph:
    build = fuzz.Builder(Random(1))
    total = build.binary("Add", build.tensor([3, 4], dtype), build.tensor([4], dtype))
    fuzz.masked(build, total, causal=False)
    return build.ops


def test_a_known_fault_needs_its_version_its_graph_and_its_result() -> None:
    graph = graph_with_a_sum("bf16")
    assert fuzz.known_fault(graph, WRONG, 13) is KNOWN
    assert fuzz.known_fault(graph, WRONG, 14) is None
    assert fuzz.known_fault(graph, result("FAILED"), 13) is None
    assert fuzz.known_fault(graph, result("FAILED", 9, used=5), 13) is None
    assert fuzz.known_fault(graph_with_a_sum("f16"), WRONG, 13) is None


def test_a_known_fault_has_a_budget() -> None:
    assert fuzz.over_budget(Counter({KNOWN.name: 9}), 300) == []
    assert len(fuzz.over_budget(Counter({KNOWN.name: 10}), 300)) == 1
