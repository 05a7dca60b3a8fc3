"""scripts/lane sets a program's environment by the files of a oneDNN installation."""

import os
import shutil
import subprocess
from pathlib import Path

from install_deps import ROOT


def fake_lane(root: Path, *names: str) -> Path:
    header = root / "include/oneapi/dnnl/dnnl_version.h"
    header.parent.mkdir(parents=True)
    numbers = (("MAJOR", 3), ("MINOR", 9), ("PATCH", 1))
    header.write_text("".join(f"#define DNNL_VERSION_{name} {n}\n" for name, n in numbers))
    (root / "lib").mkdir()
    for name in ("libdnnl.so", *names):
        (root / "lib" / name).touch()
    return root


def lane(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "MASKWISE_ONEDNN")}
    command = [str(ROOT / "scripts/lane"), *arguments]
    return subprocess.run(
        command, text=True, capture_output=True, check=False, env={**clean, **variables}
    )


def test_opencl_is_set_if_it_is_installed(tmp_path: Path) -> None:
    prefix = fake_lane(tmp_path / "sycl", "libintelocl.so")
    out = lane(str(prefix), "--", "printenv", "OCL_ICD_FILENAMES")
    assert out.stdout == f"{prefix}/lib/libintelocl.so\n"
    assert (
        lane(str(fake_lane(tmp_path / "native")), "--", "printenv", "OCL_ICD_FILENAMES").stdout
        == ""
    )


def test_returns_the_status_of_the_program(tmp_path: Path) -> None:
    assert lane(str(fake_lane(tmp_path / "x")), "--", "sh", "-c", "exit 7").returncode == 7


def test_a_users_installation_replaces_the_lanes(tmp_path: Path) -> None:
    prefix = fake_lane(tmp_path / "own")
    assert lane("--list", MASKWISE_ONEDNN=str(prefix)).stdout == f"yours={prefix}\n"
    assert "oneDNN 3.9.1" in lane("--describe", MASKWISE_ONEDNN=str(prefix)).stdout


def test_the_newest_version_is_first_and_unstable_last(tmp_path: Path) -> None:
    script = tmp_path / "scripts/lane"
    (tmp_path / "scripts/lanes").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/lane", script)
    for name in ("3.2", "3.7", "3.13", "unstable", "3.14"):
        (tmp_path / f"scripts/lanes/{name}.txt").touch()
        if name != "3.14":  # not installed
            fake_lane(tmp_path / f".deps/onednn-{name}")
    clean = {name: value for name, value in os.environ.items() if name != "MASKWISE_ONEDNN"}
    out = subprocess.run([script, "--list"], text=True, capture_output=True, check=True, env=clean)
    listed = [entry.split("=")[0] for entry in out.stdout.strip().split(";")]
    assert listed == ["3.13", "3.7", "3.2", "unstable"]


def test_wrong_usage_prints_one_line_and_returns_2(tmp_path: Path) -> None:
    for arguments in (
        (str(tmp_path), "--", "true"),
        (str(fake_lane(tmp_path / "x")), "--", "no-such-program"),
    ):
        out = lane(*arguments)
        assert out.returncode == 2
        assert out.stderr.startswith("scripts/lane: ")
        assert out.stderr.count("\n") == 1
