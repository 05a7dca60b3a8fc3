"""What a reader of the numbers must know of the machine."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from cases import CACHES


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    named = {key.strip(): value.strip() for key, value in facts.items()}
    name = named.get("model name", platform.machine())
    return f"{name} (family {named.get('cpu family', '?')}, model {named.get('model', '?')})"


def caches() -> str:
    found = []
    for index in sorted(CACHES.glob("index*")):
        kind = (index / "type").read_text().strip()
        level = (index / "level").read_text().strip()
        if kind != "Instruction":
            found.append(f"L{level} {(index / 'size').read_text().strip()}")
    return ", ".join(found)


def machine_facts() -> dict[str, str]:
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return {
        "machine": f"{processor()}, {len(os.sched_getaffinity(0))} processors",
        "caches": f"{caches()} (as the system reports them)",
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "began": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {load}",
    }
