"""Tests the self-check in a complete installation and in broken installations."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import maskwise
import pytest
from arrays import run_python
from maskwise import _integrations, _self_check

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(maskwise.__file__).parent
NOT_FOUND = "cannot open shared object file: No such file or directory"
Done = subprocess.CompletedProcess[str]


def copied(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Copies the package as symbolic links, so that a test may damage the copy."""
    package = folder / "maskwise"
    (package / "lib").mkdir(parents=True)
    for place in (PACKAGE, PACKAGE / "lib"):
        for one in place.iterdir():
            target = package / one.relative_to(PACKAGE)
            if one.name not in without and not target.exists():
                target.symlink_to(one)
    return package


def fake(folder: Path, module: str, text: str) -> None:
    (folder / f"{module}.py").write_text(text)


def self_check(folder: Path | None = None, *arguments: str, **variables: str) -> Done:
    """Runs the self-check. Modules in `folder` hide installed modules."""
    path = {} if folder is None else {"PYTHONPATH": f"{folder}:{PACKAGE.parent}"}
    ran = run_python("-m", "maskwise", *arguments, **path, **variables)
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    return ran


def test_a_good_installation() -> None:
    ran = self_check(MASKWISE_MAX_ISA="scalar")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for line in (
        "kernels        scalar",
        "MASKWISE_MAX_ISA=scalar",
        "where ok       yes",
        "attention ok   yes",
        "NumPy          works   2",
        "maskwise.where(mask, x, y)",
        "LD_PRELOAD=",
        "libtbb.so.12",
        "verdict        all fine",
    ):
        assert line in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("module", "name", "use"),
    [
        ("onnxruntime", "ONNX Runtime", "maskwise.onnxruntime.session("),
        ("openvino", "OpenVINO", "core.compile_model(maskwise.openvino.accelerate(model))"),
        ("torch", "PyTorch", "maskwise.torch.install()"),
        ("transformers", "transformers", 'attn_implementation="maskwise"'),
    ],
)
def test_an_integration_that_works(
    module: str, name: str, use: str, capsys: pytest.CaptureFixture[str]
) -> None:
    version = pytest.importorskip(module).__version__.partition("-")[0].partition("+")[0]
    (integration,) = (one for one in _integrations.INTEGRATIONS if one.name == name)
    assert _integrations.examine(integration)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{name:<14} works   {version}, ") and use in second


@pytest.mark.parametrize(
    ("function", "line"),
    [("dnnl_version", "works   3.13.2, tested"), ("", "works   for programs that contain oneDNN")],
)
def test_onednn(
    function: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = tmp_path / "lib/libdnnl.so.3"
    library.parent.mkdir()
    library.write_text("no library")
    if function:
        source = tmp_path / "dnnl.c"
        source.write_text(f"int *{function}(void) {{ static int v[] = {{3, 13, 2}}; return v; }}")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert _integrations.examine(_integrations.INTEGRATIONS[-1])
    assert capsys.readouterr().out.startswith(f"oneDNN         {line}\n")


def swap_byte(package: Path) -> None:
    """Makes the extension module need a library that does not exist."""
    (core,) = package.glob("_core*.so")
    content = core.read_bytes()
    core.unlink()
    core.write_bytes(content.replace(b"\0libmaskwise.so", b"\0libmaskwisE.so"))


def spoil(package: Path) -> None:
    (core,) = package.glob("_core*.so")
    core.unlink()
    core.write_text("no library")


def rename(package: Path) -> None:
    (core,) = package.glob("_core*.so")
    core.rename(package / "_core.cpython-39-x86_64-linux-gnu.so")


@pytest.mark.parametrize(
    ("damage", "lines"),
    [
        (swap_byte, [f"maskwise       CANNOT BE LOADED: libmaskwisE.so.0: {NOT_FOUND}"]),
        (spoil, ["maskwise       CANNOT BE LOADED: ", "_core.cpython-", "file too short"]),
        (
            rename,
            [
                "maskwise       CANNOT BE LOADED: No module named 'maskwise._core'",
                "found          _core.cpython-39-x86_64-linux-gnu.so\n",
                "expected       _core.cpython-3",
            ],
        ),
    ],
)
def test_a_package_that_cannot_be_loaded(
    damage: Callable[[Path], None], lines: list[str], tmp_path: Path
) -> None:
    damage(copied(tmp_path))
    ran = self_check(tmp_path)
    assert ran.returncode == 1
    for line in [*lines, f"folder         {tmp_path}", "numpy          2", "verdict        BROKEN"]:
        assert line in ran.stdout, ran.stdout
    assert "libmaskwise_onednn.so, libmaskwise_onnxruntime.so" in ran.stdout
    (tmp_path / "program.py").write_text("")
    ran = self_check(tmp_path, "run", str(tmp_path / "program.py"))
    assert ran.returncode == 1
    assert ran.stderr.startswith("python -m maskwise run: maskwise cannot be loaded: ")


def test_importing_a_broken_package_names_the_self_check(tmp_path: Path) -> None:
    rename(copied(tmp_path))
    path = {"PYTHONPATH": str(tmp_path)}
    words = "ImportError: maskwise cannot be loaded: No module named 'maskwise._core' (`python -m"
    assert words in run_python("-c", "import maskwise", **path).stderr
    ran = run_python("-m", "maskwise.onednn", **path)
    assert words in ran.stderr and "Traceback" not in ran.stderr


def test_a_broken_numpy(tmp_path: Path) -> None:
    fake(tmp_path, "numpy", "raise ImportError('\\n\\nlibopenblas.so: no such file\\nand more')")
    ran = self_check(tmp_path)
    assert ran.returncode == 1
    for name in ("maskwise", "numpy"):
        assert f"{name:<14} CANNOT BE LOADED: libopenblas.so: no such file\n" in ran.stdout


def test_no_numpy() -> None:
    ran = run_python("-S", "-m", "maskwise", PYTHONPATH=str(PACKAGE.parent))
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "maskwise       CANNOT BE LOADED: No module named 'numpy'\n" in ran.stdout
    assert "numpy          NOT INSTALLED: pip install numpy\n" in ran.stdout


FAILING = [
    ("transformers", "raise ImportError('libfoo.so: no such file')", "libfoo.so: no such file"),
    ("torch", "1 / 0", "ZeroDivisionError: division by zero"),
    (
        "torch",
        "__version__ = '2.7.1+cpu'",
        "2.7.1: Maskwise needs PyTorch 2.8 or newer, this is 2.7.1+cpu",
    ),
    (
        "onnxruntime",
        "__version__ = '1.23.2'; get_ep_devices = list",
        "1.23.2: Maskwise needs ONNX Runtime 1.24 or newer, this is 1.23.2",
    ),
    ("onnxruntime", "raise OSError('libonnxruntime.so')", "libonnxruntime.so"),
]


@pytest.mark.parametrize(("module", "content", "reason"), FAILING)
def test_an_integration_that_fails(module: str, content: str, reason: str, tmp_path: Path) -> None:
    fake(tmp_path, module, content)
    (name,) = (
        integration.name
        for integration in _integrations.INTEGRATIONS
        if integration.module == module
    )
    ran = self_check(tmp_path)
    assert ran.returncode == 1
    assert f"{name:<14} FAILS   {reason}" in ran.stdout, ran.stdout
    assert f"verdict        NOT FINE: {name}" in ran.stdout


def test_an_import_that_ends_the_process(tmp_path: Path) -> None:
    fake(tmp_path, "torch", "import os\nos.abort()\n")
    ran = self_check(tmp_path)
    assert ran.returncode != 0
    assert ran.stdout.endswith("\nPyTorch        "), ran.stdout


def test_an_openvino_that_maskwise_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    openvino = pytest.importorskip("openvino")
    factory = pytest.importorskip("openvino.utils.node_factory").NodeFactory
    reason = "Maskwise: does not run in OpenVINO 2031.2.0"

    def refuse(factory: object, library: str) -> None:
        raise RuntimeError(f"Exception from core.cpp:189:\nThis error happened: {reason}\n")

    monkeypatch.setattr(factory, "add_extension", refuse)
    monkeypatch.setattr(openvino, "__version__", "2031.2.0-1-releases/2031/2")
    assert _self_check.examine() == 1
    out = capsys.readouterr().out
    assert f"OpenVINO       FAILS   2031.2.0: {reason}" in out
    assert "verdict        NOT FINE: OpenVINO\n" in out


def test_an_untested_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    monkeypatch.setattr(np, "__version__", "9.8.7+local")
    assert _self_check.examine() == 0
    assert "NumPy          works   9.8.7, not tested (tested: 2.4.6)\n" in capsys.readouterr().out


def test_missing_libraries(tmp_path: Path) -> None:
    copied(tmp_path / "a", without=("libmaskwise_onednn.so", "libmaskwise_onnxruntime.so"))
    ran = self_check(tmp_path / "a")
    assert ran.returncode == 1
    assert "oneDNN         FAILS   the plugin is not in this installation: no " in ran.stdout
    junk = copied(tmp_path / "b", without=("libmaskwise_onednn.so",)) / "lib/libmaskwise_onednn.so"
    junk.write_text("no library")
    ran = self_check(tmp_path / "b")
    assert ran.returncode == 1
    assert f"oneDNN         FAILS   ERROR: ld.so: object '{junk}' from LD_PRELOAD" in ran.stdout
    assert "verdict        NOT FINE: oneDNN" in ran.stdout


@pytest.mark.parametrize(("name", "row"), [("attention", "attention ok"), ("where", "where ok")])
def test_wrong_results(
    name: str, row: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_integrations, "INTEGRATIONS", ())
    right = getattr(maskwise, name)
    monkeypatch.setattr(maskwise, name, lambda *arguments: right(*arguments) * 1.01)
    assert _self_check.examine() == 1
    assert f"{row:<14} NO\n" in capsys.readouterr().out

    def refuse(*arguments: Any) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(maskwise, name, refuse)
    assert _self_check.examine() == 1
    out = capsys.readouterr().out
    assert f"{row:<14} NO: out of luck\n" in out and f"NOT FINE: {row}\n" in out


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("function", ["run_if_readable", "where", "flash_attn_func"])
def test_torch_is_checked_in_every_type(
    function: str, dtype: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    modules = {"run_if_readable": "maskwise.torch", "where": "maskwise"}
    module = import_module(modules.get(function, "maskwise.flash_attn"))
    right = getattr(module, function)

    def wrong(*arguments: Any, **options: Any) -> Any:
        result = right(*arguments, **options)
        return result * 1.5 if str(result.dtype) == f"torch.{dtype}" else result

    monkeypatch.setattr(module, function, wrong)
    (integration,) = (one for one in _integrations.INTEGRATIONS if one.module == "torch")
    assert not _integrations.examine(integration)
    out = capsys.readouterr().out
    assert "PyTorch        FAILS" in out and f"in {dtype} differs from torch's" in out


@pytest.mark.parametrize("module", ["maskwise.torch", "maskwise.flash_attn", "maskwise._torch_op"])
def test_an_older_torch_is_refused_at_import(module: str, tmp_path: Path) -> None:
    fake(tmp_path, "torch", "__version__ = '2.7.1'")
    ran = run_python("-c", f"import {module}", PYTHONPATH=f"{tmp_path}:{PACKAGE.parent}")
    error = "ImportError: Maskwise needs PyTorch 2.8 or newer, this is 2.7.1"
    assert ran.stderr.splitlines()[-1] == error


def test_tested_versions_are_the_pinned_ones() -> None:
    files = ("python", "onnxruntime-1.24", "openvino", "torch", "exporters")
    pins = "\n".join((ROOT / f"scripts/{name}.txt").read_text() for name in files).splitlines()
    for integration in _integrations.INTEGRATIONS:
        pinned = {
            one.partition("==")[2] for one in pins if one.startswith(f"{integration.module}==")
        }
        assert pinned == set(integration.tested) or integration.module == _integrations.ONEDNN, (
            integration
        )
