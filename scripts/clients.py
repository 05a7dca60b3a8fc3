#!/usr/bin/env python3
"""Runs real programs that use oneDNN Graph, with and without the plugin preloaded.

A client passes if all of these hold:
- Two runs without the plugin and one run with it have the same outputs and execute the same
  partitions.
- The plugin's load line names the client's oneDNN.
- Every dnnl_graph function that the client calls is the plugin's.

Clients are installed below .deps/. A client that cannot be installed ("not available") is not a
failure.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import install_deps as deps

PROGRAMS = deps.ROOT / "tests/clients"
TIME_LIMIT_S = 900
# Without the second setting, Intel's extension of TensorFlow passes only int8 to oneDNN Graph.
TENSORFLOW = {"ITEX_ONEDNN_GRAPH": "1", "_ITEX_ONEDNN_GRAPH_ALL_TYPE": "1"}
# Per client: file of pins, program in tests/clients, and environment variables.
CLIENTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "torch": ("torch", "use_torch.py", {}),
    "torch-unstable": ("torch-unstable", "use_torch.py", {}),
    "tensorflow": ("tensorflow", "use_tensorflow.py", TENSORFLOW),
    "tensorflow-threadpool": (
        "tensorflow",
        "use_tensorflow.py",
        {**TENSORFLOW, "ITEX_OMP_THREADPOOL": "0"},
    ),
}


@dataclass(frozen=True)
class Run:
    status: int
    text: str  # standard output and error
    # Pairs: a file that calls a dnnl_graph function, and the file that defines the function.
    bindings: set[tuple[str, str]]

    def lines(self, pattern: str) -> list[str]:
        return sorted(re.findall(pattern, self.text, re.MULTILINE))

    def results(self) -> tuple[list[str], list[str]]:
        """Returns the outputs' hashes, and the kind and operators of each executed partition."""
        return self.lines(r"^outputs (\w+)$"), self.lines(r",graph,exec,cpu,\d+,([^,]*,[^,]*),")

    def onednn(self) -> str:
        # The first line counts: TensorFlow contains another oneDNN, which prints later.
        match = re.search(r"info,oneDNN v([\d.]+)", self.text)
        return f"oneDNN {match.group(1) if match else 'none'}"

    def end(self) -> str:
        return f"exit status {self.status}: {' / '.join(self.text.splitlines()[-3:])}"


def python_of(tree: Path) -> tuple[list[str], dict[str, str]]:
    """Returns the command and the environment variables that start an installation's Python."""
    loader = tree / "usr/lib64/ld-linux-x86-64.so.2"
    if not loader.exists():
        return [str(tree / "bin/python")], {}
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    # Debian's package scripts, which link blas/ and lapack/, did not run.
    path = [libraries, tree / "usr/lib", libraries / "blas", libraries / "lapack"]
    path += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    command = [str(loader), "--inhibit-cache", "--library-path", ":".join(map(str, path))]
    return [*command, str(tree / "usr/bin/python3")], {"PYTHONHOME": str(tree / "usr")}


def bindings_in(notes: Path) -> set[tuple[str, str]]:
    pattern = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol .dnnl_graph_")
    with notes.open(errors="replace") as lines:  # not read at once: the file may have 200 MB
        return {(match[1], match[2]) for line in lines if (match := pattern.search(line))}


def run(name: str, plugin: Path | None) -> Run:
    pins, program, settings = CLIENTS[name]
    command, environment = python_of(deps.DEPS / f"client-{pins}")
    environment |= {"ONEDNN_VERBOSE": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as folder:
        if plugin:
            environment |= {"LD_PRELOAD": str(plugin), "MASKWISE_VERBOSE": "1"}
            environment |= {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{folder}/notes"}
        result = subprocess.run(
            [*command, "-W", "ignore", str(PROGRAMS / program)],
            env={**os.environ, **environment, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        bindings = set().union(*(bindings_in(path) for path in Path(folder).iterdir()))
    return Run(result.returncode, result.stdout.decode(errors="replace"), bindings)


def faults_alone(first: Run, second: Run) -> list[str]:
    for alone in (first, second):
        if alone.status or not all(alone.results()):
            return [f"without the plugin: {alone.end()}"]
    return [] if first.results() == second.results() else ["without the plugin: two runs differ"]


def faults_with(plugin: Path, alone: Run, preloaded: Run) -> list[str]:
    faults = []
    if preloaded.status:
        faults += [preloaded.end()]
    if preloaded.results() != alone.results():
        faults += [f"results {alone.results()} without, {preloaded.results()} with the plugin"]
    if len(preloaded.lines(rf"^maskwise,load,.*,{re.escape(alone.onednn())} ")) != 1:
        faults += [f"load lines for {alone.onednn()}: {preloaded.lines('^maskwise,load.*')}"]
    # Ignores calls by oneDNN. Ignores files that never call the plugin, because for a dlsym the
    # loader reports the file in which the search starts as the caller.
    calls = preloaded.bindings
    onednn = {answers for _, answers in calls} - {str(plugin)}
    clients = {file for file, answers in calls if answers == str(plugin)} - {str(plugin)} - onednn
    if not clients or any((file, answers) in calls for file in clients for answers in onednn):
        faults += [f"not all functions are the plugin's: {sorted(calls)}"]
    return faults


def passes(name: str, plugin: Path) -> bool:
    alone = run(name, None)
    faults = faults_alone(alone, run(name, None))
    if not faults:
        preloaded = run(name, plugin)
        faults = faults_with(plugin, alone, preloaded)
    if faults:
        print(*(f"{name}: FAILED: {fault}" for fault in faults), sep="\n", flush=True)
        return False
    (outputs,), partitions = alone.results()
    print(*preloaded.lines("^maskwise,.*"), sep="\n")
    print(f"{name}: passed: {alone.onednn()}, {len(partitions)} partitions, {outputs}", flush=True)
    return True


def is_there(name: str) -> bool:
    pins = deps.Pins(PROGRAMS / f"{CLIENTS[name][0]}.txt")
    from_debian = partial(deps.build_from_debian, with_dependencies=True)
    build = from_debian if pins.suite else deps.build_environment
    try:
        deps.install(f"client {name}", deps.DEPS / f"client-{pins.path.stem}", pins, build)
    except deps.Failure as failure:
        print(f"{name}: not available: {failure}", flush=True)
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/clients", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--plugin", type=Path, help="default: build/release's plugin, built first")
    arguments = parser.parse_args()
    if unknown := set(arguments.clients) - set(CLIENTS):
        parser.error(f"no client {unknown}; there are {', '.join(CLIENTS)}")
    plugin = arguments.plugin
    if plugin is None:
        subprocess.run([deps.ROOT / "scripts/build", "release", "maskwise_onednn"], check=True)
        plugin = deps.ROOT / "build/release/lib/libmaskwise_onednn.so"
    plugin = plugin.resolve(strict=True)
    verdicts = [passes(name, plugin) for name in arguments.clients or CLIENTS if is_there(name)]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
