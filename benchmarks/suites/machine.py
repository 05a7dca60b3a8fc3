"""Facts about the machine and the measured commit, which are stored with every result.

usage: machine.py SUITE   writes these facts next to the results of SUITE below build/bench.
"""

import json
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from cases import cache_bytes

ROOT = Path(__file__).resolve().parents[2]
# Flags of /proc/cpuinfo and the instruction sets of Select's kernels, widest first.
SETS = (("avx512bw", "avx512"), ("avx2", "avx2"), ("sse4_1", "sse4"))
# The name of a processor's class begins with the processor's widest set. A hypervisor may hide AMX.
CLASSES = (("amx_bf16", "amx"), *SETS)
# Excludes documents and results, which change with every measurement.
SOURCES = (".", ":!docs", ":!*.md")


def processor_facts() -> dict[str, str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def processor() -> str:
    named = processor_facts()
    name = named.get("model name", platform.machine())
    return f"{name} (family {named.get('cpu family', '?')}, model {named.get('model', '?')})"


def processors() -> str:
    return f"{processor()}, {len(os.sched_getaffinity(0))} processors"


def cpu_class() -> str:
    """Returns the instruction set and the CPU model. A table holds the results of one class."""
    named = processor_facts()
    flags = (named.get("flags") or named.get("Features", "")).split()
    isa = next((name for flag, name in CLASSES if flag in flags), "neon")
    words = re.findall(r"[a-z0-9]+", processor().lower().replace("(r)", "").replace("(tm)", ""))
    return "-".join([isa, *(word for word in words if word not in ("family", "model"))])


def commit() -> str:
    """Returns the measured commit, followed by + if tracked sources differ from this commit."""
    if (kit := ROOT / "commit").exists():  # in a field kit, which has no repository
        return kit.read_text().strip()
    git = ["git", "-C", str(ROOT)]
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    changes = [*git, "status", "--porcelain", "--untracked-files=no", "--", *SOURCES]
    return head + ("+" if subprocess.check_output(changes) else "")


def stamp() -> dict[str, str]:
    return {
        "command": os.environ.get("MASKWISE_COMMAND", "").strip(),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{processors()}, load {os.getloadavg()[1]:.1f}",
        "class": cpu_class(),
    }


def write_stamp(folder: Path, suite: str) -> None:
    """Writes the facts of stamp() next to the results of a suite, for scripts/take_figures.py."""
    (folder / f"{suite}.stamp.json").write_text(json.dumps(stamp(), indent=1) + "\n")


def machine_facts() -> dict[str, str]:
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    caches = ", ".join(f"L{level} {size >> 10}K" for level, size in cache_bytes().items())
    return {
        "machine": processors(),
        "caches": f"{caches} (as the system reports them)",
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "began": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {load}",
    }


if __name__ == "__main__":
    write_stamp(ROOT / "build/bench", sys.argv[1])
