"""Runs each model in ONNX Runtime without Maskwise. A crash ends only the model's own process."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnxruntime as ort
from arrays import Array
from attention_models import Case, tolerance, with_zeros_past_lengths
from where_models import providers_of, session_of, stock_session

MODELS = int(os.environ.get("MASKWISE_ATTENTION_MODELS", "40"))  # models per operator
# Since ONNX Runtime 1.28, a fully masked row is 0, and a soft cap precedes the mask.
IS_NEW = tuple(map(int, ort.__version__.split(".")[:2])) >= (1, 28)
SECONDS = 20  # a model that runs longer counts as hanging
MASKWISE = maskwise.onnxruntime.PROVIDER
Results = list[Array]


def run_stock(model: bytes, feeds: dict[str, Array]) -> Results | str:
    """Returns the outputs, or the error text."""
    try:
        return [*stock_session(model).run(None, feeds)]
    except Exception as failure:  # ONNX Runtime's error classes are private
        return str(failure)


def send_stock(to: Connection, model: bytes, feeds: dict[str, Array]) -> None:
    to.send(run_stock(model, feeds))


class StockJudge:
    """Runs each model in its own process, forked by a server that has loaded the modules."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["stock_judge"])

    def run(self, model: bytes, feeds: dict[str, Array]) -> Results | str:
        """Returns the result of run_stock, or a text if the process ended or hung."""
        ours, theirs = self.context.Pipe(duplex=False)
        child = self.context.Process(target=send_stock, args=(theirs, model, feeds))
        child.start()
        theirs.close()
        try:
            answer: Results | str = ours.recv() if ours.poll(SECONDS) else "the process hangs"
        except EOFError:
            answer = "the process ended"
        child.kill()
        child.join()
        return answer


def results_of(
    make: Any, model: bytes, feeds: dict[str, Array], kind: str
) -> tuple[Any, str, bool]:
    """Returns the outputs, the error text, and whether Maskwise claims the operator."""
    try:
        session = make(model)
    except Exception as failure:  # ONNX Runtime's error classes are private
        return None, str(failure), False
    claimed = providers_of(session, kind) == [MASKWISE]
    try:
        return session.run(None, feeds), "", claimed
    except Exception as failure:
        return None, str(failure), claimed


def with_maskwise(case: Case) -> tuple[Any, str, bool]:
    def make(model: bytes) -> Any:
        return session_of(model, threads=2, is_claimed=False)

    return results_of(make, case.model(), case.feeds, case.kind)


def alone(case: Case) -> tuple[Any, str, bool]:
    return results_of(stock_session, case.model(), case.feeds, case.kind)


def expect_same(case: Case, got: Results, expected: Results) -> None:
    for name, one, other in zip(case.outputs, got, expected, strict=True):
        assert one.shape == other.shape, name
        if name == "Y":
            one, other = with_zeros_past_lengths(case, one), with_zeros_past_lengths(case, other)
        limit = tolerance(case)
        np.testing.assert_allclose(
            one.astype(float), other.astype(float), limit, limit, equal_nan=True, err_msg=name
        )
