"""Tests the checksums and SBOM of a release, and the check of a wheel."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import release
import wheels


def set_changes(folder: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    changes = folder / "CHANGELOG.md"
    changes.write_text(f"# Changelog\n\n## {first} (2026-01-01)\n")
    monkeypatch.setattr(release, "CHANGES", changes)


def test_a_release_lists_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "maskwise-1-cp311-cp311-any.whl").write_bytes(b"wheel")
    (tmp_path / "maskwise-1.tar.gz").write_bytes(b"sources")
    (tmp_path / "notes").write_bytes(b"not released")
    set_changes(tmp_path, monkeypatch, release.version())
    monkeypatch.setattr(sys, "argv", ["release.py", str(tmp_path)])
    release.main()
    lines = (line.split("  ") for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    sums = {name: value for value, name in lines}
    assert sums == {
        "maskwise-1-cp311-cp311-any.whl": hashlib.sha256(b"wheel").hexdigest(),
        "maskwise-1.tar.gz": hashlib.sha256(b"sources").hexdigest(),
    }
    sbom = json.loads((tmp_path / f"maskwise-{release.version()}.spdx.json").read_text())
    assert sbom["spdxVersion"] == "SPDX-2.3"
    assert {package["name"] for package in sbom["packages"]} == {
        "maskwise",
        *(name for name, *_ in release.INSIDE),
    }
    assert all(package["versionInfo"] for package in sbom["packages"])
    checksums = {f["fileName"][2:]: f["checksums"][0]["checksumValue"] for f in sbom["files"]}
    assert checksums == sums


def test_a_release_needs_its_version_in_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_changes(tmp_path, monkeypatch, "9.8.6")
    monkeypatch.setattr(release, "version", lambda: "9.8.7")
    monkeypatch.setattr(sys, "argv", ["release.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"begins with 9\.8\.6, not 9\.8\.7"):
        release.main()


FINE: dict[str, Any] = {
    "sym_tag": "manylinux_2_9_x86_64",
    "versioned_symbols": {"libc.so.6": ["GLIBC_2.9"]},
    "external_libs": {"libtbb.so.12": None},
}


@pytest.mark.parametrize(
    ("changed", "size", "fault"),
    [
        ({}, 1, None),
        ({"sym_tag": "manylinux_2_34_x86_64"}, 1, "GLIBC"),
        ({"sym_tag": "linux_x86_64"}, 1, "linux_x86_64"),
        ({"external_libs": {"libz.so.1": None}}, 1, "needs libz.so.1"),
        ({"external_libs": {"libopenvino.so.2641": None}}, 1, "needs libopenvino.so.2641"),
        ({}, 3_100_000, "3100000 bytes"),
    ],
)
def test_a_wheel_with_a_fault_is_refused(
    changed: dict[str, Any],
    size: int,
    fault: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wheels, "run", lambda *_: json.dumps({**FINE, **changed}))
    wheel = tmp_path / "one.whl"
    with wheel.open("wb") as file:
        file.truncate(size)
    with pytest.raises(SystemExit, match=fault) if fault else nullcontext():
        wheels.check(wheel, wheels.MACHINES[0])
