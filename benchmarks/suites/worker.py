"""The processes that are measured: one for each implementation, asked line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("onnxruntime", "openvino", "numpy", "numexpr")


class Died(Exception):
    """The process ended instead of answering."""


class Worker:
    """A process that answers JSON by JSON; one that died is started again at the next request."""

    def __init__(self, impl: str, command: list[str], environment: dict[str, str]) -> None:
        self.impl = impl
        self.command = command
        self.environment = {**os.environ, **environment}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        log = ROOT / "build/bench" / f"{self.impl}.log"
        with log.open("a") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                env=self.environment,
                start_new_session=True,  # an interrupt ends the run, not this process's answer
            )
        return self.process

    def ask(self, **request: object) -> dict[str, Any]:
        process = self.process or self.start()
        assert process.stdin and process.stdout
        line = ""
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            self.process = None
            raise Died(f"the process ended with status {process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.impl}: {answer['error']}")
        return answer

    def close(self) -> None:
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def lane_command(impl: str, build: Path, lane: str, program: str) -> list[str]:
    """Runs a program of the build in front of that oneDNN, with Maskwise before it or without."""
    command = [str(ROOT / "scripts/lane")]
    if impl == "maskwise":
        command += ["--preload", str(build / "lib/libmaskwise_onednn.so")]
    return [*command, lane, "--", str(build / "bin" / program)]


def client(impl: str, build: Path, lane: str) -> Worker:
    """The client of oneDNN Graph, with Maskwise in front or without."""
    command = lane_command(impl, build, lane, f"bench_client-{lane}")
    return Worker(impl, command, {"MASKWISE_DISABLE": "0" if impl == "maskwise" else "1"})


def engine(build: Path) -> Worker:
    """Maskwise by its own functions, without oneDNN."""
    return Worker("maskwise", [str(build / "bin/bench_client-engine")], {})


def limit(build: Path) -> Worker:
    return Worker("limit", [str(build / "bin/bench_limit")], {})


def peer(impl: str) -> Worker:
    threads = str(len(os.sched_getaffinity(0)))
    # Pages as everybody else has them: NumPy alone would ask for huge ones.
    settings = {"NUMPY_MADVISE_HUGEPAGE": "0", "NUMEXPR_MAX_THREADS": threads}
    program = ROOT / "benchmarks/peers/serve.py"
    return Worker(impl, [sys.executable, "-B", str(program), impl], settings)
