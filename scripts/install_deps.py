#!/usr/bin/env python3
"""Installs the pinned Python tools, the oneDNN lanes and, on request, other packages below .deps/.

Each environment is assembled in a temporary folder, which is renamed when complete. The
environment's stamp contains the hash of its pins. So an interrupted run leaves no incomplete
environment, and a repeated run does nothing.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
STAMP = ".maskwise-stamp"
PARTIAL = ".partial-"
RECIPE = "1"  # part of every stamp; increase it if the steps below change


class Failure(Exception):
    """Ends the run with one line for the user."""


def version_is(actual: str, relation: str, version: str) -> bool:
    command = ["dpkg", "--compare-versions", actual, relation, version]
    return subprocess.run(command, check=False).returncode == 0


# For each kind of rule: a test of an actual version, and a format for the pinned version.
RULES: dict[str, tuple[Callable[[str, str], bool], str]] = {
    "expect": (str.startswith, "{}"),
    "at-least": (lambda actual, version: version_is(actual, "ge", version), "{} or newer"),
    "below": (lambda actual, version: version_is(actual, "lt", version), "below {}"),
}


class Pins:
    """A file of pins: comments, lines with a key and its value, rules, and packages to install.

    'expect PACKAGE VERSION' requires a version that begins with VERSION. 'at-least PACKAGE VERSION'
    is for a Debian release whose versions change. A lane with this rule is skipped if the
    installation fails, unless the lane is an argument. 'below PACKAGE VERSION' is an upper bound.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text()
        lines = [line.split("#", 1)[0].split() for line in self.text.splitlines()]
        words = [line for line in lines if line]
        self.meaning = "\n".join(" ".join(line) for line in words)  # without comments
        settings = {line[0]: line[1] for line in words if len(line) == 2}
        self.suite = settings.get("suite", "")
        self.architecture = settings.get("architecture", "amd64")
        self.rules = [tuple(line) for line in words if line[0] in RULES]
        self.moves = any(rule == "at-least" for rule, *_ in self.rules)
        self.items = [line[0] for line in words if len(line) == 1]

    def stamp(self) -> str:
        return hashlib.sha256(f"{RECIPE}\n{self.meaning}".encode()).hexdigest()

    def size(self) -> str:
        match = re.search(r"^# (about .*)$", self.text, re.MULTILINE)
        return match.group(1) if match else "unknown size"


def say(text: str) -> None:
    print(f"scripts/setup: {text}", file=sys.stderr, flush=True)


def telling_line(output: str) -> str:
    """Returns the most informative line of a failed command's output: a line about the network,
    else an error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for pattern in (r".*Failed to fetch", r".*Retrying .* after connection broken", r"(ERROR|E): "):
        matches = [line for line in lines if re.match(pattern, line)]
        if matches:
            return re.sub(r".*connection broken by '(?:.*?>: )?(.*?)'?\)?': .*", r"\1", matches[-1])
    return lines[-1] if lines else "it printed nothing"


def run_quietly(title: str, command: list[str], cwd: Path | None = None) -> str:
    """Runs a command and returns its output. Raises Failure with one line of the output."""
    result = subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{title} failed: {telling_line(result.stdout + result.stderr)}")
    return result.stdout


@contextlib.contextmanager
def installer_lock() -> Iterator[None]:
    """Locks the checkout for one installer, and removes the folders of installers that were
    killed."""
    DEPS.mkdir(exist_ok=True)
    with (DEPS / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another scripts/setup in this checkout")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in DEPS.glob(f"{PARTIAL}*"):
            shutil.rmtree(leftover)
        yield


def is_current(place: Path, pins: Pins) -> bool:
    stamp = place / STAMP
    return stamp.is_file() and stamp.read_text().strip() == pins.stamp()


def put_in_place(complete: Path, place: Path) -> None:
    if place.exists():
        old = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=DEPS))
        place.rename(old / "old")
        complete.rename(place)
        shutil.rmtree(old)
    else:
        complete.rename(place)


def install(name: str, place: Path, pins: Pins, build: Callable[[Path, Pins], None]) -> None:
    if is_current(place, pins):
        return
    with installer_lock():
        if is_current(place, pins):
            return
        say(f"{name}: {pins.size()}")
        start = time.monotonic()
        work = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=DEPS))
        try:
            tree = work / "tree"
            tree.mkdir()
            # If pip is killed, its downloads remain in this folder, which the next run removes.
            os.environ["TMPDIR"] = str(work)
            build(tree, pins)
            (tree / STAMP).write_text(pins.stamp() + "\n")
            put_in_place(tree, place)
        except Failure as failure:
            raise Failure(f"{name}: {failure}; nothing is left half done") from None
        finally:
            shutil.rmtree(work, ignore_errors=True)
        say(f"{name}: ready after {time.monotonic() - start:.0f} s")


def install_named(title: str, name: str, build: Callable[[Path, Pins], None]) -> None:
    install(title, DEPS / name, Pins(ROOT / f"scripts/{name}.txt"), build)


def pip(python: Path, arguments: list[str]) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command += ["--no-deps", "--only-binary=:all:", "--no-compile", *arguments]
    run_quietly("the download by pip", command)


def build_environment(tree: Path, pins: Pins) -> None:
    # The environment still works when renamed: its tools are started as `bin/python -m <tool>`.
    run_quietly("creating a Python environment", [sys.executable, "-m", "venv", str(tree)])
    pip(tree / "bin/python", ["--requirement", str(pins.path)])


def build_on_torch(tree: Path, pins: Pins) -> None:
    """Builds an environment that also sees the packages of .deps/torch, because PyTorch is too
    large for a second copy."""
    build_environment(tree, pins)
    (packages,) = tree.glob("lib/python3*/site-packages")
    torch = DEPS / "torch" / packages.relative_to(tree)
    (packages / "torch.pth").write_text(f"{torch.resolve()}\n")


def build_from_wheels(tree: Path, pins: Pins) -> None:
    # The wheels contain include/ and lib/, which pip unpacks below the prefix.
    python = DEPS / "tools/bin/python"
    prefix = ["--ignore-installed", "--no-warn-script-location", "--prefix", str(tree)]
    pip(python, [*prefix, "--requirement", str(pins.path)])


def debian_mirror() -> str:
    """Returns the Debian mirror of this machine's release from the user's apt configuration."""
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    suites = {release.get("VERSION_CODENAME", "").strip('"'), "stable", "oldstable"}
    listing = run_quietly("reading the apt sources", ["apt-get", "update", "--print-uris"])
    for line in listing.splitlines():
        match = re.match(r"'(.+)/dists/([^/]+)/InRelease'", line)
        if match and match.group(2) in suites:
            return match.group(1)
    raise Failure("no Debian mirror for this release among the sources of apt")


def apt_options(work: Path, suite: str, architecture: str) -> list[str]:
    """Returns options for an apt with own sources, lists and cache. The user's proxies apply."""
    (work / "lists/partial").mkdir(parents=True)
    (work / "cache/archives/partial").mkdir(parents=True)
    (work / "status").touch()
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source = f"deb [arch={architecture} signed-by={keyring}] {debian_mirror()} {suite} main\n"
    (work / "sources.list").write_text(source)
    settings = {
        "Dir::State": work,
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def check_versions(folder: Path, pins: Pins) -> None:
    for rule, name, version in pins.rules:
        actual = next((path.name.split("_")[1] for path in folder.glob(f"{name}_*.deb")), "0")
        holds, wanted = RULES[rule]
        if not holds(actual, version):
            raise Failure(f"expected {name} {wanted.format(version)}, the mirror has {actual}")
        if rule == "at-least":
            say(f"{name} of {pins.suite} is {actual}")


def build_from_debian(tree: Path, pins: Pins, with_dependencies: bool = False) -> None:
    """Unpacks packages of another release without installing them."""
    work = tree.parent / "apt"
    work.mkdir()
    apt = ["apt-get", "-q", *apt_options(work, pins.suite, pins.architecture)]
    fetch = ["download"]
    if with_dependencies:
        fetch = ["install", "--yes", "--no-install-recommends", "--download-only"]
    run_quietly("apt-get update", [*apt, "update"])
    run_quietly(f"apt-get {fetch[0]}", [*apt, *fetch, *pins.items], cwd=work)
    for package in sorted(work.glob("**/*.deb")):
        run_quietly(f"unpacking {package.name}", ["dpkg", "-x", str(package), str(tree)])
    check_versions(work, pins)


def try_lane(tree: Path) -> None:
    """Raises Failure if the lane's header is missing, or its libdnnl does not load."""
    if not (tree / "include/oneapi/dnnl/dnnl_graph.h").exists():
        raise Failure("no oneapi/dnnl/dnnl_graph.h in the installed packages")
    load = f"import ctypes; ctypes.CDLL('{tree}/lib/libdnnl.so').dnnl_graph_graph_create"
    run_quietly(
        "loading libdnnl", [str(ROOT / "scripts/lane"), str(tree), "--", sys.executable, "-c", load]
    )


def build_debian_lane(tree: Path, pins: Pins) -> None:
    build_from_debian(tree, pins)
    (tree / "include").symlink_to("usr/include")
    (tree / "lib").symlink_to("usr/lib/x86_64-linux-gnu")
    (tree / "ld-linux-x86-64.so.2").symlink_to("lib/ld-linux-x86-64.so.2")


def build_lane(tree: Path, pins: Pins) -> None:
    (build_debian_lane if pins.suite else build_from_wheels)(tree, pins)
    try_lane(tree)


def lane_pins(names: list[str]) -> list[Pins]:
    known = {path.stem: path for path in sorted((ROOT / "scripts/lanes").glob("*.txt"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Failure(f"no lane '{unknown[0]}'; there are {', '.join(known)}")
    return [Pins(known[name]) for name in (names or known)]


def install_lane(pins: Pins, wanted_by_name: bool) -> None:
    name = pins.path.stem
    try:
        install(f"oneDNN lane {name}", DEPS / f"onednn-{name}", pins, build_lane)
    except Failure as failure:
        if wanted_by_name or not pins.moves:
            raise
        say(f"{failure}; skipped")


def newest_on_index(name: str) -> str:
    """Returns the newest version of a package for this Python; empty without a network."""
    command = [str(DEPS / "python/bin/python"), "-m", "pip", "--disable-pip-version-check"]
    command += ["--retries=0", "--timeout=5", "index", "versions", name]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    match = re.match(r"\S+ \((\S+)\)", result.stdout)
    return match.group(1) if match else ""


def say_newer_release(name: str, pins: Pins) -> None:
    pinned = next(item.split("==")[1] for item in pins.items if item.startswith(f"{name}=="))
    newest = newest_on_index(name)
    if newest and version_is(newest, "gt", pinned):
        say(f"{name} {newest} is out; {pins.path.name} pins {pinned}")


def install_for_python() -> None:
    """Installs the packages to build and test the Python package, the oldest supported ONNX
    Runtime, and ONNX Runtime's headers."""
    pins = Pins(ROOT / "scripts/python.txt")
    if not is_current(DEPS / "python", pins):  # a repeated run needs no network
        install("packages for the Python package", DEPS / "python", pins, build_environment)
        say_newer_release("onnxruntime", pins)
    install_named("ONNX Runtime 1.24", "onnxruntime-1.24", build_environment)
    pins = Pins(ROOT / "scripts/onnxruntime_headers.txt")
    try:
        install("ONNX Runtime headers", DEPS / "onnxruntime-headers", pins, build_from_debian)
    except Failure as failure:
        say(f"{failure}; skipped")


def install_for_wheels() -> None:
    install_named("wheel tools", "wheel_tools", build_environment)
    for version in ("3.11", "3.14"):
        for architecture in ("amd64", "arm64"):
            pins = Pins(ROOT / f"scripts/python_headers-{version}.txt")
            pins.architecture = architecture
            name = f"python_headers-{version}-{architecture}"
            install(f"headers of Python {version}", DEPS / name, pins, build_from_debian)
    downloads = DEPS / "openvino"
    command = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.11"]
    for line in Pins(ROOT / "scripts/openvino.txt").items:
        if not list(downloads.glob(f"{line.replace('==', '-')}-*.whl")):
            say(f"{line}: about 60 MB")
            python = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
            run_quietly("the download by pip", [*python, *command, "--dest", str(downloads), line])


def install_all(lanes: list[str]) -> None:
    install_named("Python tools", "tools", build_environment)
    prefix = os.environ.get("MASKWISE_ONEDNN", "")
    if prefix:
        run_quietly(f"MASKWISE_ONEDNN={prefix}", [str(ROOT / "scripts/lane"), "--describe"])
        return
    if platform.machine() != "x86_64":
        raise Failure("the lanes exist for x86-64 only; set MASKWISE_ONEDNN=<prefix of a oneDNN>")
    for pins in lane_pins(lanes):
        install_lane(pins, wanted_by_name=bool(lanes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lanes", nargs="*", help="lanes to install (default: all)")
    parser.add_argument(
        "--peers", action="store_true", help="also libraries that scripts/bench compares with"
    )
    parser.add_argument(
        "--torch", action="store_true", help="also PyTorch, with which scripts/bench compares"
    )
    parser.add_argument("--servers", action="store_true", help="also vLLM and zentorch")
    parser.add_argument("--exporters", action="store_true", help="also packages to export models")
    parser.add_argument(
        "--python", action="store_true", help="also packages to build and test the Python package"
    )
    parser.add_argument("--wheels", action="store_true", help="also the tools of scripts/wheels")
    parser.add_argument("--aarch64", action="store_true", help="also libraries for the cross build")
    arguments = parser.parse_args()
    try:
        install_all(arguments.lanes)
        if arguments.peers:
            install_named("peers", "peers", build_environment)
        if arguments.torch or arguments.exporters or arguments.servers:
            install_named("PyTorch", "torch", build_environment)
        if arguments.servers:
            install_named("vLLM and zentorch", "servers", build_on_torch)
        if arguments.exporters:
            install_named("exporters", "exporters", build_on_torch)
        if arguments.python:
            install_for_python()
        if arguments.wheels:
            install_for_wheels()
        if arguments.aarch64:
            install_named("AArch64 libraries", "aarch64", build_from_debian)
    except Failure as failure:
        say(str(failure))
        return 1
    except KeyboardInterrupt:
        say("interrupted; nothing is left half done")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
