"""The masks suite names a call form that returns a wrong result, and omits a refused form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

# A peer with three forms: right, wrong in one element, and refused.
PLANTED = """
import mask_problem
import numpy as np

def refuse():
    raise ValueError("no such\\nmask")

class Peer(mask_problem.Peer):
    version = "1"
    def __init__(self, threads): pass
    def ways(self, problem):
        right = np.zeros(problem.shape, np.float32)
        wrong = right.copy()
        wrong[0, 1, 2, 3] = np.nan
        read = lambda answer: answer
        return {"right": lambda: (lambda: right, read), "wrong": lambda: (lambda: wrong, read),
                "refused": refuse}
"""
ASK = """
import json, sys, tempfile
from pathlib import Path
import masks
from mask_problem import PROBLEMS
masks.ENVIRONMENTS["planted"] = Path(sys.prefix)
peer = masks.MaskPeer("planted")
with tempfile.TemporaryDirectory() as folder:
    answers = peer.prepare(PROBLEMS[1], "f32", folder)
    faults = masks.faults(answers, "f32")
shares = {p.name: float(p.kept.mean()) for p in PROBLEMS if p.name.endswith("tiles")}
print(json.dumps({"forms": peer.forms, "faults": faults, "shares": shares}))
peer.close()
"""


def test_a_wrong_and_a_refused_form(tmp_path: Path, ask_numpy: Callable[..., Any]) -> None:
    (tmp_path / "mask_planted.py").write_text(PLANTED)
    answer = ask_numpy(ASK, folder=str(tmp_path))
    assert answer["forms"] == ["right", "wrong"]
    assert answer["faults"] == ["wrong differs from Maskwise by nan"]
    assert answer["shares"]["25 % of the tiles"] == 0.25
