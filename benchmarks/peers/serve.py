"""Serves requests to run Select or attention in one peer, with the protocol of bench_client.

A peer is a library to compare with. Its module is peer_<name>.py (Select) or mask_<name>.py
(attention). The module's class Peer has `version`, `threads`, `load` and `forms`. `load` prepares a
case and returns the answer to "load". `forms` then maps names to calls that run the case.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

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
    """Seconds per call, measured like take_samples in common/serve.cpp."""
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


def answer(peer: Any, request: dict[str, Any]) -> dict[str, Any]:
    action = request["do"]
    if action == "hello":
        forms = list(peer.forms)
        return {"version": peer.version, "threads": peer.threads, "forms": forms}
    if action == "load":
        reply: dict[str, Any] = peer.load(request["case"])
        return reply
    if action == "time":
        samples, most = int(request["samples"]), float(request["max_seconds"])
        return {"samples": take_samples(peer.forms[request.get("form", "")], samples, most)}
    raise ValueError(f"unknown request {action!r}")


def serve(module: str) -> None:
    """Answers each line of standard input. Output of libraries goes to standard error."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    # Imports only this peer's module, because each peer starts threads.
    peer = import_module(module).Peer(len(os.sched_getaffinity(0)))
    for line in sys.stdin:
        try:
            reply = answer(peer, json.loads(line))
        except Exception as error:  # the answer contains the error's text
            reply = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    serve(sys.argv[1])
