"""Tests the reports on models. test_onnxruntime_limits.py tests ONNX Runtime's report further."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
import pytest
from arrays import run_python
from maskwise import _report
from sdpa_models import Attention, attention_model
from select_models import accelerate, select_model
from test_openvino_limits import in_a_body
from test_openvino_softmax import chain_model

HALF, ONE = np.ones(3, np.float16), np.ones(3, np.float32)


def report(model: ov.Model, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    ov.save_model(model, folder / "model.xml")
    return run_python("-m", "maskwise.openvino", str(folder / "model.xml"), *arguments)


def expect(ran: subprocess.CompletedProcess[str], claim: str, *parts: str) -> None:
    assert ran.returncode == 0, ran.stderr
    for part in parts:
        assert part in ran.stdout, ran.stdout
    assert ran.stderr == f"maskwise,claim,{claim}\n"


def test_the_report_on_openvino(tmp_path: Path) -> None:
    ran = report(select_model([[-1, -1, 1024]] * 3), tmp_path, "--turns", "2", "--dim", "c[1]=128")
    expect(
        ran,
        "select,Select-1 f32",
        "given extents         c[1]=128\nassumed extents       c[0]=1, x[0]=1, x[1]=128, y[0]=1",
        "inputs                c [1, 128, 1024], x [1, 128, 1024], y [1, 128, 1024]\n",
        "Select   select  Maskwise\n1 of 1 Select by Maskwise\n",
        "times as fast",
        "results               agree to the bit\n",
    )


def test_the_report_on_a_softmax(tmp_path: Path) -> None:
    ran = report(chain_model(), tmp_path, "--turns", "1", "--threads", "1")
    expect(
        ran,
        "weights,rows f32 3 nodes",
        "1 of 1 Softmax by",
        "1 of 1 Select by",
        "results               agree; largest difference",
    )


def test_the_report_on_attention(tmp_path: Path) -> None:
    """Results agree within the tolerance, even if OpenVINO alone computes in bf16 on this CPU."""
    ran = report(attention_model(Attention(rows=130, keys=130)), tmp_path, "--turns", "1")
    expect(
        ran,
        "attention,attention f32 1 node",
        "1 of 1 ScaledDotProductAttention by Maskwise",
        "OpenVINO computes in",
        "results               agree; largest difference",
    )


def test_the_report_on_a_model_without_claims(tmp_path: Path) -> None:
    ran = report(in_a_body(ov.Type.f32), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "0 of 2 Select by Maskwise" in ran.stdout
    assert "Maskwise runs no operation of this model" in ran.stdout and " ms" not in ran.stdout
    assert ran.stderr.count("maskwise,refuse,select,Select-1 f32,it is small") == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nowhere"], 2, "error: model is nowhere, expected a file that exists"),
        (["junk.xml"], 1, "python -m maskwise.openvino: OpenVINO refuses junk.xml: "),
        (["model.xml", "--dim", "words=3"], 2, "the model has no dimension 'words', it has c[0], "),
        (["model.xml", "--dim", "x[0]=3", "--dim", "c[0]=2"], 1, "python -m maskwise.openvino: "),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    status: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from maskwise import _openvino_report

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWISE_VERBOSE", "0")
    Path("junk.xml").write_text("no model")
    ov.save_model(select_model([[-1]] * 3), "model.xml")
    with pytest.raises(SystemExit) as ended:
        _openvino_report.main(arguments)
    error = capfd.readouterr().err.strip().rpartition("\n")[2]
    assert (ended.value.code, words in error) == (status, True), error


@pytest.mark.parametrize(
    ("got", "expected", "apart", "agrees"),
    [
        (ONE, ONE, 0, True),
        (ONE * 1.0001, ONE, 1e-4, True),
        (ONE * 1.01, ONE, 1e-2, False),
        (HALF * np.float16(1.01), HALF, 1e-2, True),
        (ONE * np.nan, ONE * np.nan, 0, True),
        (ONE * np.inf, ONE * np.inf, 0, True),
        (ONE * np.nan, ONE, np.inf, False),
        (ONE * np.inf, -ONE * np.inf, np.inf, False),
        (ONE[:2], ONE, np.inf, False),
        (ONE.astype(int), ONE.astype(int) + 1, np.inf, False),
        (np.array(["a"], object), np.array(["a"], object), 0, True),
        (ONE[:0], ONE[:0], 0, True),
    ],
)
def test_results_agree_except_for_rounding(
    got: Any, expected: Any, apart: float, agrees: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _report.difference(got, expected) == pytest.approx(apart, rel=0.1)
    assert _report.print_runs("alone", lambda: [ONE, got], lambda: [ONE, expected], 1) is agrees
    assert (
        "results               DIFFER; largest difference " in capsys.readouterr().out
    ) is not agrees


def test_default_extents_and_inputs() -> None:
    parser = _report.make_parser("maskwise", "")
    ports: list[_report.Port] = [("a", "bool", ["n", "words", 3]), ("b", "int64", ["words"])]
    assert _report.open_extents(parser, ports, {}) == {"n": 1, "words": 128}
    assert _report.open_extents(parser, ports, {"words": 7}) == {"n": 1, "words": 7}
    inputs = _report.draw_inputs([*ports, ("c", "object", [2])], {"n": 1, "words": 7})
    assert {name: array.shape for name, array in inputs.items()} == {
        "a": (1, 7, 3),
        "b": (7,),
        "c": (2,),
    }


def test_taken_lists_the_operations_of_maskwise() -> None:
    taken = maskwise.openvino.taken
    model = select_model([[4]] * 3)
    forced = accelerate(model, force=True)
    assert taken(model) == taken(accelerate(model)) == []
    assert taken(forced) == taken(forced.clone()) == ["select"]
    assert taken(accelerate(in_a_body(ov.Type.f32), force=True)) == ["select", "select"]
    assert taken(accelerate(chain_model())) == ["weights"]


@pytest.mark.parametrize("host", ["onnxruntime", "openvino"])
def test_without_the_host(host: str, tmp_path: Path) -> None:
    (tmp_path / f"{host}.py").write_text(f"raise ModuleNotFoundError('no {host}', name='{host}')")
    command = [sys.executable, "-B", "-m", f"maskwise.{host}", "model.onnx"]
    places = os.pathsep.join([str(tmp_path), str(Path(maskwise.__file__).parents[1])])
    ran = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": places},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"python -m maskwise.{host}: {host} is not installed\n"
