"""Measures attention with typical masks of models. Maskwise, PyTorch, and vLLM with zentorch take
turns in three processes. Each process is stopped while another is measured.

Started by scripts/bench masks, which installs and builds everything.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
from attention_client import ENVIRONMENTS, Peer
from mask_problem import PROBLEMS, Problem
from table import begin_suite, save_table, shown
from worker import ROOT

TURNS, SAMPLES, SECONDS = 7, 40, 0.06
ALLOWED = {"f32": 2e-5, "bf16": 4e-2}  # largest allowed difference between two forms' answers
HEAD = ["mask", "shape", "kept", "type", "Maskwise, rules", "Maskwise, array"]
HEAD += ["Maskwise, prepared", "SDPA", "FlexAttention", "vLLM", "zentorch"]
HEAD += ["speedup over the fastest other"]
OWN = ("no mask", "rules", "array", "prepared")


class MaskPeer(Peer):
    def __init__(self, name: str) -> None:
        super().__init__(name, ROOT / ENVIRONMENTS[name] / "bin/python", "mask")
        self.forms: list[str] = []

    def prepare(self, problem: Problem, dtype: str, folder: str) -> dict[str, str]:
        """Loads the problem. Returns the answers' files by form (a way to call the library)."""
        case = {"problem": problem.name, "dtype": dtype, "folder": folder}
        answer = self.ask(do="load", case=case)
        for form, reason in answer["refused"].items():
            print(f"{problem.name} {dtype}: {form} refused: {reason}", file=sys.stderr)
        self.forms = list(answer["answers"])
        return {form: f"{folder}/{file}" for form, file in answer["answers"].items()}

    def median(self, form: str) -> float:
        answer = self.ask(do="time", form=form, samples=SAMPLES, max_seconds=SECONDS)
        return statistics.median(answer["samples"])


def faults(answers: dict[str, str], dtype: str) -> list[str]:
    """Compares each form's answer with the first answer, which Maskwise computed. Returns a line
    for each form whose answer differs by more than ALLOWED."""
    read = {form: np.fromfile(file, np.float32) for form, file in answers.items()}
    first = next(iter(read.values()))
    apart = {form: float(np.abs(one - first).max()) for form, one in read.items()}
    return [
        f"{form} differs from Maskwise by {by:.2g}"
        for form, by in apart.items()
        if not by <= ALLOWED[dtype]
    ]


def measure(
    peers: list[MaskPeer], problem: Problem, dtype: str
) -> tuple[dict[str, float], list[str]]:
    """Returns the median milliseconds of each form, and a line per wrong answer."""
    with tempfile.TemporaryDirectory() as folder:
        answers = {k: v for peer in peers for k, v in peer.prepare(problem, dtype, folder).items()}
        wrong = faults(answers, dtype)
    taken: dict[str, list[float]] = {}
    ways = [(peer, form) for peer in peers for form in peer.forms]
    for turn in range(TURNS):
        for peer, form in ways[:: 1 if turn % 2 == 0 else -1]:
            taken.setdefault(form, []).append(1e3 * peer.median(form))
    return {form: statistics.median(times) for form, times in taken.items()}, wrong


def row_of(problem: Problem, dtype: str, times: dict[str, float]) -> list[str]:
    batch, heads, rows, depth = problem.shape
    group = f"/{problem.key_heads}" if problem.key_heads else ""
    keys = f"x{problem.keys}" if problem.keys else ""
    kept = "1" if problem.kept is None else f"{problem.kept.mean():.2f}"

    def cell(*forms: str) -> str:
        measured_times = [times[form] for form in forms if form in times]
        return f"{min(measured_times):.3g}" if measured_times else "-"

    maskwise_time = min(time for form, time in times.items() if form in OWN)
    others = [time for form, time in times.items() if form not in OWN]
    return [
        *(problem.name, f"{batch}x{heads}{group}x{rows}{keys}x{depth}", kept, dtype),
        *(cell("rules", "no mask"), cell("array"), cell("prepared")),
        *(cell("SDPA", "SDPA is_causal"), cell("FlexAttention")),
        *(cell("vLLM"), cell("zentorch")),
        f"{min(others) / maskwise_time:.2f}" if others else "-",
    ]


def main() -> int:
    only = begin_suite("masks", __doc__, "masks")
    peers, wrong = [MaskPeer("engine"), MaskPeer("torch"), MaskPeer("server")], []

    def rows() -> Iterator[list[str]]:
        for problem in PROBLEMS:
            for dtype in problem.dtypes if only in problem.name else ():
                times, faults_of = measure(peers, problem, dtype)
                wrong.extend(f"{problem.name} {dtype}: {fault}" for fault in faults_of)
                yield row_of(problem, dtype, times)

    table = shown(HEAD, rows())
    versions: list[Any] = [peer.ask(do="hello")["version"] for peer in peers]
    if not only:
        named = f"Maskwise {versions[0]}, PyTorch {versions[1]}, {versions[2]}; milliseconds"
        save_table(ROOT / "build/bench", "masks", named, HEAD, table)
    for peer in peers:
        peer.close()
    print("\n".join(wrong))
    return 1 if wrong or not table else 0


if __name__ == "__main__":
    sys.exit(main())
