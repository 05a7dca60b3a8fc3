"""The measured processes, one per implementation."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("onnxruntime", "openvino", "numpy", "numexpr")


class Died(Exception):
    """The process ended before it answered."""


class Worker:
    """A process that answers each request with a line of JSON. The first request starts the
    process. If `rests` is set, the process is stopped between requests, because its spinning
    threads would slow other processes."""

    def __init__(
        self, impl: str, command: list[str], environment: dict[str, str], rests: bool = False
    ) -> None:
        self.impl = impl
        self.command = command
        self.environment = {**os.environ, **environment}
        self.rests = rests
        self.process: subprocess.Popen[str] | None = None

    def signal(self, number: signal.Signals) -> None:
        if self.rests and self.process:
            self.process.send_signal(number)

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
                start_new_session=True,  # Ctrl-C does not reach this process
            )
        return self.process

    def answer_of(self, request: str, begin: str = "") -> dict[str, Any]:
        """Sends a request. Returns the JSON after `begin` in the next line that starts with
        `begin`."""
        process = self.process or self.start()
        assert process.stdin and process.stdout
        line = None
        self.signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request + "\n")
            process.stdin.flush()
            line = next((line for line in process.stdout if line.startswith(begin)), None)
        if line is None:
            self.process = None
            raise Died(f"the process ended with status {process.wait()}")
        self.signal(signal.SIGSTOP)
        answer: dict[str, Any] = json.loads(line.removeprefix(begin))
        return answer

    def ask(self, **request: object) -> dict[str, Any]:
        answer = self.answer_of(json.dumps(request))
        if "error" in answer:
            raise RuntimeError(f"{self.impl}: {answer['error']}")
        return answer

    def close(self) -> None:
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.signal(signal.SIGCONT)
            self.process.wait()
            self.process = None


def lane_command(impl: str, build: Path, lane: str, program: str) -> list[str]:
    """Returns the command that runs a program of the build in a lane (an installed oneDNN). `impl`
    "maskwise" preloads the plugin."""
    command = [str(ROOT / "scripts/lane")]
    if impl == "maskwise":
        command += ["--preload", str(build / "lib/libmaskwise_onednn.so")]
    return [*command, lane, "--", str(build / "bin" / program)]


def client(impl: str, build: Path, lane: str, wait_policy: str = "") -> Worker:
    """Returns a client of oneDNN Graph. `impl` "maskwise" preloads the plugin."""
    command = lane_command(impl, build, lane, f"bench_client-{lane}")
    environment = {"MASKWISE_DISABLE": "0" if impl == "maskwise" else "1"}
    if wait_policy:
        environment["OMP_WAIT_POLICY"] = wait_policy
    return Worker(impl, command, environment, rests=wait_policy == "active")


def openmp_lanes(described: str) -> list[str]:
    """Returns lanes with OpenMP in the output of scripts/lane --describe, newest oneDNN last."""
    lines = [line for line in described.splitlines() if "OMP_WAIT_POLICY" in line]
    matches = [re.match(r"lane (\S+) +oneDNN ([\d.]+)", line) for line in lines]
    pairs = [(match[2].split("."), match[1]) for match in matches if match]
    return [name for _, name in sorted(pairs, key=lambda pair: [int(part) for part in pair[0]])]


def onednn_alone(build: Path, lane: str) -> list[Worker]:
    """Returns workers for the lane's oneDNN and for the newest oneDNN with OpenMP, which has no
    SYCL overhead. Both wait policies of OpenMP are measured, because users choose the policy."""
    describe = [str(ROOT / "scripts/lane"), "--describe"]
    openmp = openmp_lanes(subprocess.check_output(describe, text=True))
    built = [name for name in openmp if (build / f"bin/bench_client-{name}").exists()]
    workers = []
    for name in dict.fromkeys((lane, *built[-1:])):
        if name not in openmp:
            workers.append(client("onednn", build, name))
            continue
        for policy in ("passive", "active"):
            workers.append(client(f"onednn {name} {policy}", build, name, policy))
    return workers


def engine(build: Path, impl: str = "maskwise", **environment: str) -> Worker:
    """Returns a client of Maskwise's engine, without oneDNN."""
    return Worker(impl, [str(build / "bin/bench_client-engine")], environment)


def limit(build: Path) -> Worker:
    return Worker("limit", [str(build / "bin/bench_limit")], {})


def peer(impl: str) -> Worker:
    threads = str(len(os.sched_getaffinity(0)))
    settings = {"NUMEXPR_MAX_THREADS": threads}
    program = ROOT / "benchmarks/peers/serve.py"
    return Worker(impl, [sys.executable, "-B", str(program), f"peer_{impl}"], settings)
