"""Checks and measures Maskwise on this machine. The archive that scripts/field_kit makes contains
everything this program needs, except Python with torch and NumPy. Stage `models` also needs
transformers. The program needs no network. Only the measurement of FlexAttention needs a compiler.

usage: run [--limit SECONDS] [--out FILE] [STAGE...]

After each stage, writes all results so far to one JSON file, which scripts/take_figures.py --field
reads.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_OUTPUT = 4000  # characters from the end of a stage's output that go into the JSON file


@dataclass(frozen=True)
class Stage:
    name: str
    command: tuple[str, ...]
    seconds: int  # time limit


def stages(root: Path) -> list[Stage]:
    programs, field = root / "programs/bin", root / "benchmarks/field"
    python = (sys.executable, "-B")
    limits = (*python, f"{root}/benchmarks/suites/limits.py", f"--build={root}/programs")
    return [
        Stage("test_kernels", (f"{programs}/test_kernels", "--gtest_brief=1"), 300),
        Stage("test_attention", (f"{programs}/test_attention", "--gtest_brief=1"), 600),
        Stage("limits", (*limits, "--filter=^kept/|^thin/.*/1/"), 300),
        Stage("attention", (*python, f"{field}/attention.py"), 900),
        Stage("attention_1", (*python, f"{field}/attention.py", "--threads=1"), 600),
        Stage("models", (*python, f"{field}/models.py"), 900),
        Stage("select", (*python, f"{field}/select_torch.py"), 120),
    ]


def wheel_tag(version: tuple[int, int], is_free_threaded: bool) -> str:
    """Returns the wheel's tag. Python 3.12 and newer share a wheel, except free-threaded Python."""
    if is_free_threaded:
        return f"cp3{version[1]}-cp3{version[1]}t"
    return "cp311-cp311" if version[1] == 11 else "cp312-abi3"


def unpack_wheel(root: Path) -> Path:
    """Unpacks the wheel for this Python, adds the archive's libtbb, and returns the folder."""
    folder = root / "package"
    shutil.rmtree(folder, ignore_errors=True)
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    tag = wheel_tag(sys.version_info[:2], is_free_threaded)
    for wheel in (root / "wheels").glob(f"maskwise-*-{tag}-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        shutil.copy(root / "wheels/libtbb.so.12", folder / "maskwise/lib")
    return folder


def environment(root: Path) -> dict[str, str]:
    benchmarks = root / "benchmarks"
    folders = [unpack_wheel(root), *(benchmarks / name for name in ("suites", "peers", "python"))]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "MASKWISE_COMMAND": "scripts/field_kit",
    }


def facts(env: dict[str, str]) -> dict[str, Any]:
    code = (
        "import json, maskwise, numpy, torch; print(json.dumps({'torch': torch.__version__, "
        "'NumPy': numpy.__version__, 'Maskwise': maskwise.__version__, "
        "'instruction set': maskwise.instruction_set(), 'threads': torch.get_num_threads()}))"
    )
    command = [sys.executable, "-B", "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    libraries = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    processor = [line.partition(":") for line in first.splitlines()]
    return {
        "python": platform.python_version(),
        "system": f"Linux {platform.release()}, {' '.join(platform.libc_ver())}",
        "processors": len(os.sched_getaffinity(0)),
        "processor": {key.strip(): value.strip() for key, _, value in processor},
        "c++": shutil.which("g++") or shutil.which("clang++") or "no compiler",
        **libraries,
    }


def run_stage(stage: Stage, seconds: float, env: dict[str, str], log: Path) -> dict[str, Any]:
    """Runs a stage. At the time limit, kills the stage's process and its children."""
    begin = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(
            stage.command, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(seconds)
            end = "passed" if status == 0 else f"ended with {status}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            end = f"cut off after {seconds:.0f} s"
    took = round(time.monotonic() - begin, 1)
    output = log.read_text(errors="replace")[-MOST_OUTPUT:]
    return {"name": stage.name, "end": end, "seconds": took, "said": output}


def tables(root: Path) -> dict[str, Any]:
    """Returns all tables, except tables that are incomplete because their stage was stopped."""
    tables_read = {}
    for path in sorted((root / "build/bench").glob("*.json")):
        with contextlib.suppress(json.JSONDecodeError):
            tables_read[path.name] = json.loads(path.read_text())
    return tables_read


def run(root: Path, chosen: list[Stage], limit: float, out: Path, env: dict[str, str]) -> None:
    (root / "build/bench").mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"facts": facts(env), "stages": []}
    for stage in chosen:
        print(f"{stage.name}: at most {min(limit, stage.seconds):.0f} s", flush=True)
        done = run_stage(stage, min(limit, stage.seconds), env, root / f"{stage.name}.log")
        results["stages"].append(done)
        results["tables"] = tables(root)
        out.write_text(json.dumps(results, indent=1) + "\n")
        print(f"{stage.name}: {done['end']} ({done['seconds']} s)", flush=True)


def main() -> None:
    root = Path(__file__).resolve().parent
    known = stages(root)
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("--limit", type=float, default=3600, help="maximum seconds per stage")
    parser.add_argument("--out", type=Path, default=root / "field.json")
    parser.add_argument(
        "stages", nargs="*", help=f"stages to run: {', '.join(one.name for one in known)}"
    )
    wanted = parser.parse_args()
    if unknown := set(wanted.stages) - {one.name for one in known}:
        parser.error(f"no stage '{unknown.pop()}'")
    chosen = [one for one in known if not wanted.stages or one.name in wanted.stages]
    run(root, chosen, wanted.limit, wanted.out, environment(root))
    print(f"written: {wanted.out}")


if __name__ == "__main__":
    main()
