"""Tests the package's types, and the libraries that the package loads."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import maskwise
import maskwise.onednn
import pytest
from arrays import run_python

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/maskwise"


def test_the_plugin_can_be_preloaded() -> None:
    """Without oneDNN, the plugin loads and does nothing."""
    library = maskwise.onednn.library()
    ran = run_python("-c", "print(open('/proc/self/maps').read())", LD_PRELOAD=library)
    assert ran.returncode == 0
    assert Path(library).resolve().name in ran.stdout and not ran.stderr


def test_a_missing_plugin_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(maskwise, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(FileNotFoundError, match="not in this installation"):
        maskwise.onednn.library()


@pytest.mark.parametrize("order", ["maskwise, openvino", "openvino, maskwise"])
def test_one_libtbb_in_either_import_order(order: str) -> None:
    pytest.importorskip("openvino")
    code = f"""
import {order}, numpy as np
core = openvino.Core(); core.available_devices
x = np.zeros(1_000_000)
maskwise.where(x == 0, x, 1.0)
print(len({{line.split()[-1] for line in open('/proc/self/maps') if 'libtbb.so' in line}}))
"""
    ran = run_python("-c", code)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


def test_types() -> None:
    """mypy checks the package without the project's settings, as in a user's program."""
    options = ("--strict", "--config-file=", "--cache-dir", os.devnull)
    ran = run_python("-m", "mypy", *options, str(PACKAGE))
    assert ran.returncode == 0, ran.stdout


def test_import_loads_no_other_library() -> None:
    """Other libraries and rarely used modules are imported at their first use."""
    code = (
        "import numpy, sys; before = set(sys.modules); import maskwise;"
        "print(*(set(sys.modules) - before))"
    )
    ran = run_python("-c", code)
    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert "maskwise" in loaded and loaded <= {"maskwise", "__future__", "atexit"}, loaded


def test_where_has_numpys_signature_and_out() -> None:
    signature = inspect.signature(maskwise.where)
    assert str(signature) == "(condition, x=None, y=None, /, *, out=None)"


def test_public_names_have_docstrings() -> None:
    for name in maskwise.__all__:
        assert len(getattr(maskwise, name).__doc__) > 50, name
    for word in ("Parameters", "Returns", "Raises", "out"):
        assert word in str(maskwise.where.__doc__)
