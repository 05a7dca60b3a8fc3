"""Measures attention with the masks of scripts/bench masks. Maskwise, PyTorch's SDPA and
FlexAttention take turns in one process, on torch tensors and torch's threads.

With all threads, writes build/bench/masks.json, like scripts/bench masks. With N threads, writes
build/bench/masks_N.json.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial

import mask_engine
import mask_torch
import maskwise
import torch
from attending import Form
from mask_problem import PROBLEMS, Problem
from masks import HEAD, faults, row_of
from serve import take_samples
from table import save_table, shown
from worker import ROOT

TURNS, SAMPLES, SECONDS = 5, 20, 0.03
FLEX = "FlexAttention"


class Peer(mask_torch.Peer):
    left_out: frozenset[str] = frozenset()  # forms to skip; FlexAttention is added after a refusal

    def ways(self, problem: Problem) -> dict[str, Callable[[], Form]]:
        kind = torch.float32 if problem.dtype == "f32" else torch.bfloat16
        operands = [torch.from_numpy(one).to(kind) for one in problem.operands()]
        attend = partial(maskwise.attention, *operands, enable_gqa=True)
        ways = mask_engine.forms(problem, attend, mask_torch.read, torch.from_numpy) | super().ways(
            problem
        )
        return {form: make for form, make in ways.items() if form not in self.left_out}


def measure(peer: Peer) -> dict[str, float]:
    """Returns each form's milliseconds per call, the median over the turns."""
    taken: dict[str, list[float]] = {form: [] for form in peer.forms}
    for turn in range(TURNS):
        for form in [*taken][:: 1 if turn % 2 == 0 else -1]:
            samples = take_samples(peer.forms[form], SAMPLES, SECONDS)
            taken[form].append(1e3 * statistics.median(samples))
    return {form: statistics.median(times) for form, times in taken.items()}


def rows(peer: Peer, wrong: list[str]) -> Iterator[list[str]]:
    for problem in PROBLEMS:
        for dtype in problem.dtypes:
            with tempfile.TemporaryDirectory() as folder:
                case = {"problem": problem.name, "dtype": dtype, "folder": folder}
                loaded = peer.load(case)
                files = {form: f"{folder}/{name}" for form, name in loaded["answers"].items()}
                case_faults = faults(files, dtype)
            wrong += [f"{problem.name} {dtype}: {fault}" for fault in case_faults]
            for form, reason in loaded["refused"].items():
                print(f"{problem.name} {dtype}: {form} refused: {reason}", file=sys.stderr)
                peer.left_out |= {form} & {FLEX}
            yield row_of(problem, dtype, measure(peer))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    threads = parser.parse_args().threads
    peer, wrong, done = Peer(threads), [], []
    name = "masks" if threads == len(os.sched_getaffinity(0)) else f"masks_{threads}"
    versions = f"Maskwise {maskwise.__version__}, PyTorch {torch.__version__}; milliseconds"

    def saved_rows() -> Iterator[list[str]]:
        for row in rows(peer, wrong):
            done.append(row)
            save_table(ROOT / "build/bench", f"{name}-part", versions, HEAD, done)
            yield row

    save_table(ROOT / "build/bench", name, versions, HEAD, shown(HEAD, saved_rows()))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
