"""Arguments of a wrong kind raise a documented error. Its text is one line, written by Maskwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwise
import maskwise.onnxruntime
import maskwise.openvino
import numpy as np
import onnx
import openvino as ov
import pytest
from arrays import run_python
from onnx import TensorProto
from onnx_where import model_of, op, value
from openvino import opset13 as ops

MASK, X, Q = np.ones((2, 3), bool), np.ones((2, 3), "f"), np.ones((2, 4, 8), "f")
JUNK = np.random.default_rng(0).bytes(500)
# Parts of error texts by Python, NumPy or nanobind.
FOREIGN = ("has no attribute", "incompatible function", "C++ type", "truth value", "positional")


FLOATS = [value(name, TensorProto.FLOAT, ["batch", "seq"]) for name in "xz"]
MASKS = [value("c", TensorProto.BOOL, ["batch", "seq"])]
MODEL = onnx.load_from_string(
    model_of([op("Where", "c", "x", "x", "z")], [*MASKS, FLOATS[0]], FLOATS[1:])
)


def openvino_model(dtype: Any = np.float32) -> ov.Model:
    x, condition = ops.parameter([2], dtype), ops.parameter([2], np.bool_)
    return ov.Model([ops.select(condition, x, x)], [condition, x], "select")


def refused(error: type[Exception], words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert words in text
    assert "\n" not in text
    assert not [part for part in FOREIGN if part in text]


@pytest.mark.parametrize("value", [5, None, [1, 2], {}, object(), X, int, 0.5], ids=repr)
def test_a_model_of_a_wrong_type_is_refused(value: Any) -> None:
    for call in (
        maskwise.onnxruntime.session,
        maskwise.openvino.accelerate,
        maskwise.openvino.taken,
    ):
        refused(TypeError, "model is ", lambda call=call: call(value))
    if value is not None:
        options = "expected an onnxruntime.SessionOptions"
        refused(TypeError, options, lambda: maskwise.onnxruntime.session(MODEL, value))


def test_models_of_other_libraries_are_refused() -> None:
    refused(TypeError, "expected an openvino.Model", lambda: maskwise.openvino.accelerate("m.onnx"))
    compiled = ov.Core().compile_model(openvino_model(), "CPU")
    refused(TypeError, "expected an openvino.Model", lambda: maskwise.openvino.accelerate(compiled))


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    session = maskwise.onnxruntime.session
    refused(FileNotFoundError, "model is nowhere.onnx, ", lambda: session("nowhere.onnx"))
    refused(IsADirectoryError, f"the directory {tmp_path}", lambda: session(tmp_path))
    for content in (b"", JUNK, b"text\n"):
        file = tmp_path / "model.onnx"
        file.write_bytes(content)
        refused(ValueError, f"model is {file}, not an ONNX model", lambda file=file: session(file))
        words = f"model is {len(content)} bytes, not an ONNX model"
        refused(ValueError, words, lambda content=content: session(content))


@pytest.mark.parametrize("name", ["providers", "provider_options", "enable_fallback"])
@pytest.mark.parametrize("value", [5, "CPUExecutionProvider", ["CPU"], X], ids=repr)
def test_providers_of_a_session_are_refused(name: str, value: Any) -> None:
    call = maskwise.onnxruntime.session
    refused(ValueError, f"{name} is ", lambda: call(MODEL, **{name: value}))


@pytest.mark.parametrize("name", ["force", "zero_masked_rows"])
@pytest.mark.parametrize("value", [None, "yes", [True], X, 2, 0.5], ids=repr)
def test_flags_of_accelerate_must_be_booleans(name: str, value: Any) -> None:
    call = maskwise.openvino.accelerate
    refused(TypeError, f"{name} is ", lambda: call(openvino_model(), **{name: value}))


@pytest.mark.parametrize(
    ("error", "precision"),
    [
        *((TypeError, x) for x in (5, True, X, ["f32"])),
        *((ValueError, x) for x in ("f16", "", "i8")),
    ],
    ids=repr,
)
def test_other_precisions_of_accelerate_are_refused(error: type[Exception], precision: Any) -> None:
    call = maskwise.openvino.accelerate
    refused(error, "precision is ", lambda: call(openvino_model(), precision=precision))


def test_wrong_arguments_of_explain_are_refused() -> None:
    call: Any = maskwise.explain
    for operands in ([], [MASK], [MASK, X, X, None]):
        expected = rf"\Aexplain\(\) takes the 3 positional .* of where\(\), got {len(operands)}; "
        with pytest.raises(TypeError, match=expected):
            call(*operands)
    with pytest.raises(TypeError, match=r"explain\(\) takes no keyword arguments"):
        call(MASK, x=X, y=X)
    call = maskwise.explain_attention
    with pytest.raises(TypeError, match="query has dtype bool, expected float32"):
        call(MASK, X, X, attn_mask=None)
    with pytest.raises(TypeError, match="query has dtype bool, expected float32"):
        call(MASK, X, X, X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'maks'"):
        call(X, X, X, None, maks=1)
    call = maskwise.instruction_set
    with pytest.raises(TypeError, match="takes no arguments"):
        call(3)


def test_explain_accepts_operands_of_where() -> None:
    assert maskwise.explain(MASK, None, X).startswith("numpy.where: ")
    assert maskwise.where(MASK, None, X)[0, 0] is None


@pytest.mark.parametrize("name", ["auto_broadcast", "dialect"])
@pytest.mark.parametrize("value", [5, None, ["numpy"], b"numpy"], ids=repr)
def test_names_for_select_must_be_strings(name: str, value: Any) -> None:
    for condition in (MASK, [True]):
        call = lambda condition=condition: maskwise.select(condition, X, X, **{name: value})  # noqa: E731
        refused(TypeError, f"{name} is {value!r}, expected a string", call)


@pytest.mark.parametrize("value", [None, {}, object(), int], ids=repr)
def test_objects_are_no_operands_of_select(value: Any) -> None:
    for position, name in enumerate(("cond", "src_0", "src_1")):
        operands: list[Any] = [MASK, X, X]
        operands[position] = value
        call = lambda operands=operands: maskwise.select(*operands)  # noqa: E731
        refused(TypeError, f"{name} holds ", call)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (name, value, "expected True or False")
        for name in ("is_causal", "enable_gqa")
        for value in ("yes", [1, 2], {}, MASK, None, 2)
    ]
    + [("scale", value, "expected a float") for value in ("0.5", b"x", [1.0], X, {}, 10**400)],
    ids=repr,
)
def test_settings_of_attention_have_one_type(name: str, value: Any, expected: str) -> None:
    for query in (Q, Q.tolist()):
        call = lambda query=query: maskwise.attention(query, Q, Q, **{name: value})  # noqa: E731
        refused(TypeError, expected, call)


def test_flags_of_attention_may_be_numpy_bools() -> None:
    expected = maskwise.attention(Q, Q, Q, is_causal=True)
    for flag in (np.True_, 1):
        assert np.array_equal(maskwise.attention(Q, Q, Q, is_causal=flag), expected)


def test_an_out_of_another_shape_is_refused() -> None:
    words = "out has shape (3,), the result is (2, 4, 8)"
    refused(ValueError, words, lambda: maskwise.attention(Q, Q, Q, out=np.ones(3, "f")))


def run(module: str, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """Returns the status, standard output, and the last line of standard error."""
    done = run_python("-m", module, *arguments, **variables)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr.strip().rpartition("\n")[2]


MODULES = ["maskwise", "maskwise.onnxruntime", "maskwise.openvino"]


@pytest.mark.parametrize("module", MODULES)
def test_usage_of_every_module(module: str) -> None:
    status, out, _ = run(module, "--help")
    assert (status, out.startswith(f"usage: python -m {module} ")) == (0, True)
    status, out, error = run(module, "--nonsense")
    assert (status, out) == (2, "")
    assert error.startswith(f"python -m {module}: error: ")


@pytest.mark.parametrize("module", MODULES)
def test_reports_name_a_wrong_environment_variable(module: str, tmp_path: Path) -> None:
    onnx.save(MODEL, tmp_path / "model.onnx")
    model = [] if module == "maskwise" else [str(tmp_path / "model.onnx")]
    status, _, error = run(module, *model, MASKWISE_MAX_ISA="avx99")
    assert status == 2
    assert error.startswith(f"python -m {module}: error: MASKWISE_MAX_ISA=avx99 is unknown")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "model is nowhere, expected a file that exists"),
        (["."], "model is the directory ., expected a file"),
        (["junk"], "model is junk, not an ONNX model"),
        (["empty"], "model is empty, not an ONNX model"),
        (["model", "--dim", "seq=x"], "--dim: 'seq=x', expected NAME=EXTENT"),
        (["model", "--dim", "seq"], "--dim: 'seq', expected NAME=EXTENT"),
        (["model", "--dim", "=3"], "--dim: '=3', expected NAME=EXTENT"),
        (["model", "--dim", "words=3"], "the model has no dimension 'words', it has batch, seq"),
        (["model", "--turns", "0"], "--turns: 0, expected one or more"),
        (["model", "--threads", "-1"], "--threads: '-1', expected an integer of 0 or more"),
    ],
    ids=str,
)
def test_the_report_names_a_wrong_argument(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from maskwise import _onnxruntime_report

    monkeypatch.chdir(tmp_path)
    for name, content in {"junk": JUNK, "empty": b"", "model": MODEL.SerializeToString()}.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        _onnxruntime_report.main(arguments)
    error = capfd.readouterr().err.strip().rpartition("\n")[2]
    assert (ended.value.code, words in error) == (2, True), error
