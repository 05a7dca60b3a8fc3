"""Runs Select by one peer, request by request: the same requests as bench_client answers."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from operands import Refused

SAMPLE_SECONDS = 100e-6
SLOW_SECONDS = 0.1
WARM_SECONDS = 10e-3


def time_calls(call: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def calls_of_sample(seconds_of_call: float) -> int:
    return max(1, int(SAMPLE_SECONDS / seconds_of_call))


def take_samples(call: Callable[[], object], samples: int, max_seconds: float) -> list[float]:
    """Seconds a call, by the same rule as the clients in C++."""
    begin = time.perf_counter()
    latest = time_calls(call, 1)
    if latest > SLOW_SECONDS:
        return [latest]
    while time.perf_counter() - begin < WARM_SECONDS:
        latest = time_calls(call, calls_of_sample(latest))
    calls = calls_of_sample(latest)
    counted = time.perf_counter()
    taken: list[float] = []
    while len(taken) < samples:
        taken.append(time_calls(call, calls))
        if time.perf_counter() - counted > max_seconds:
            break
    return taken


class Server:
    def __init__(self, name: str) -> None:
        # Only the module of this peer is imported: each brings threads of its own.
        self.peer: Any = import_module(f"peer_{name}").Peer(len(os.sched_getaffinity(0)))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        what = request["do"]
        if what == "hello":
            forms = list(getattr(self.peer, "forms", [""]))
            return {"version": self.peer.version, "threads": self.peer.threads, "forms": forms}
        if what == "load":
            try:
                return {"state": "right" if self.peer.load(request["case"]) else "wrong"}
            except Refused as reason:
                return {"state": "refused", "reason": str(reason)}
        if what == "time":
            samples, most = int(request["samples"]), float(request["max_seconds"])
            form = request.get("form")
            call = self.peer.forms[form] if form else self.peer.call
            return {"samples": take_samples(call, samples, most)}
        raise ValueError(f"unknown request {what!r}")


def serve(start: Callable[[], Any]) -> None:
    """Answers the lines of standard input; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    server = start()
    for line in sys.stdin:
        try:
            reply = server.answer(json.loads(line))
        except Exception as error:  # the text is what the user gets to see
            reply = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    serve(lambda: Server(sys.argv[1]))
