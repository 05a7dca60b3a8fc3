"""Runs attention by one peer, request by request.
{"do": "hello"}                         version, threads
{"do": "load", "case": ...}             runs each form once and writes its answer into the folder
{"do": "time", "form", "samples", "max_seconds"}

A peer is a module attention_<name>.py with a class Peer: `version`, `threads`, and `forms`, which
gives the ways it has for a case, each as a function that gets it ready.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from attention_operands import Form, Operands
from serve import serve, take_samples

REASON = 200  # characters of what a library says


class Server:
    def __init__(self, name: str) -> None:
        # Only the module of this peer is imported: each brings threads of its own.
        self.peer: Any = import_module(f"attention_{name}").Peer(len(os.sched_getaffinity(0)))
        # Libraries have their addresses only, so the operands and answers are held here.
        self.operands: Operands | None = None
        self.ready: dict[str, Form] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        what = request["do"]
        if what == "hello":
            return {"version": self.peer.version, "threads": self.peer.threads}
        if what == "load":
            return self.load(request["case"])
        if what == "time":
            samples, most = int(request["samples"]), float(request["max_seconds"])
            call, _ = self.ready[request["form"]]
            return {"samples": take_samples(call, samples, most)}
        raise ValueError(f"unknown request {what!r}")

    def load(self, case: dict[str, Any]) -> dict[str, Any]:
        self.ready = {}
        self.operands = Operands(case)
        answers: dict[str, str] = {}
        refused: dict[str, str] = {}
        for form, make_ready in self.peer.forms(self.operands).items():
            try:
                call, read = make_ready()
                answer = read(call())
            except Exception as error:  # a peer's own, of any class
                refused[form] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:REASON]
                continue
            answers[form] = f"answer-{len(answers)}"
            answer.tofile(Path(case["folder"]) / answers[form])
            self.ready[form] = call, read
        return {"answers": answers, "refused": refused}


if __name__ == "__main__":
    serve(lambda: Server(sys.argv[1]))
