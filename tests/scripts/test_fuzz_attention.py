"""What excuses a wrong result of a random attention graph, and what does not."""

import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchdnn"))
import fuzz_attention as fuzz


def result(state: str, *wrong: int, used: float = 0.0) -> fuzz.Result:
    return {"state": state, "reason": "", "wrong_tensors": [*wrong], "allowance_used": used}


WRONG = result("FAILED", 9, used=1e5)
ABORTED = result("ABORTED")
KNOWN = fuzz.KNOWN_FAULTS[0]


def test_the_same_tensor_wrong_alone_for_a_known_reason_is_excused() -> None:
    elsewhere, further = result("FAILED", 7, used=1e5), result("FAILED", 7, 9, used=1e5)
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
    assert fuzz.known_fault(odd_graph(), ABORTED, KNOWN.minor) is None
    assert fuzz.fault_of(result("PASSED"), ABORTED, None) != ""


def test_a_result_near_the_bound_is_told() -> None:
    assert fuzz.fault_of(result("PASSED", used=0.9), result("PASSED", used=0.2), None) != ""
    assert fuzz.fault_of(result("PASSED", used=0.9), result("PASSED", used=0.9), None) == ""


def odd_graph() -> fuzz.Graph:
    build = fuzz.Builder(Random(1))
    a, b = build.tensor([1, 2, 3, 4], "f32"), build.tensor([1, 2, 4, 3], "f32")
    a["stride"] = [4, 12, 4, 1]
    scores = build.add("MatMul", [a, b], [1, 2, 3, 3], "f32")
    fuzz.masked(build, scores, causal=False)
    return build.ops


def test_a_known_fault_needs_its_version_its_graph_and_its_result() -> None:
    graph = odd_graph()
    assert fuzz.known_fault(graph, WRONG, 13) is KNOWN
    assert fuzz.known_fault(graph, WRONG, 14) is None
    assert fuzz.known_fault(graph, result("FAILED"), 13) is None
    graph[0]["inputs"][0]["stride"] = [24, 12, 4, 1]
    assert fuzz.known_fault(graph, WRONG, 13) is None


def test_a_known_fault_has_a_budget() -> None:
    assert fuzz.over_budget(Counter({KNOWN.name: 30}), 300) == []
    assert len(fuzz.over_budget(Counter({KNOWN.name: 31}), 300)) == 1


def test_a_type_that_the_cpu_lacks_is_lacking_on_both_sides() -> None:
    lacking = {**result("SKIPPED"), "reason": "partition of op 0: this machine has no bf16"}
    assert fuzz.is_lacking(lacking, lacking)
    assert not fuzz.is_lacking(lacking, result("PASSED"))
    assert not fuzz.is_lacking(result("PASSED"), lacking)
    assert not fuzz.is_lacking(ABORTED, ABORTED)
    assert not fuzz.is_lacking({**lacking, "reason": "no such type"}, lacking)
