"""The fuzzer excuses a fault of the plugin only if oneDNN alone has the same fault."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchdnn"))
import fuzz_attention as fuzz


def result(state: str, *wrong: int, used: float = 0.0) -> fuzz.Result:
    return {"state": state, "reason": "", "wrong_tensors": [*wrong], "allowance_used": used}


WRONG, ABORTED, PASSED = result("FAILED", 9, used=3.0), result("ABORTED"), result("PASSED")
NEAR = result("PASSED", used=0.9)


@pytest.mark.parametrize(
    ("plugin", "alone", "is_excused"),
    [
        (PASSED, PASSED, True),
        (PASSED, WRONG, True),
        (WRONG, WRONG, True),
        (WRONG, result("FAILED", 7, 9), True),
        (result("FAILED", 7, 9), WRONG, False),
        (WRONG, result("FAILED", 7), False),
        (WRONG, PASSED, False),
        (result("FAILED"), WRONG, False),
        (ABORTED, ABORTED, False),
        (ABORTED, WRONG, False),
        (PASSED, ABORTED, True),
        (NEAR, PASSED, False),
        (NEAR, NEAR, True),
    ],
)
def test_only_the_same_fault_of_onednn_alone_excuses(
    plugin: fuzz.Result, alone: fuzz.Result, is_excused: bool
) -> None:
    assert (fuzz.fault_of(plugin, alone) == "") == is_excused
