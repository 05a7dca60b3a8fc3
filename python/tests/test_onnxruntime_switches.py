"""The switch that turns the provider off, and models that ONNX Runtime saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from fused_models import example
from onnx import TensorProto
from onnx_where import where_model
from where_models import options, providers_of, stock_session

MASKWISE, CPU = maskwise.onnxruntime.PROVIDER, "CPUExecutionProvider"
KINDS = pytest.mark.parametrize("kind", ["where", "rows", "attention"])


def test_one_switch_leaves_all_nodes_to_onnx_runtime(capfd: Any) -> None:
    model = example("attention")[0]
    where = where_model(TensorProto.FLOAT, [["n"]] * 3)
    for turned_off in ({"enable": False}, {"sess_options": options(maskwise_enable="0")}):
        for each in (model, where):
            session_options: dict[str, Any] = {"sess_options": options(), **turned_off}
            session_options["sess_options"].add_session_config_entry("maskwise.verbose", "1")
            session = maskwise.onnxruntime.session(each, **session_options)
            groups = session.get_provider_graph_assignment_info()
            assert {group.ep_name for group in groups} == {CPU}
    assert "maskwise," not in capfd.readouterr().err
    session_options = options()
    for enable, provider in ((False, CPU), (None, CPU), (True, MASKWISE)):
        session = maskwise.onnxruntime.session(where, session_options, enable=enable)
        assert providers_of(session) == [provider]
    with pytest.raises(TypeError, match="enable is 1, expected a bool"):
        maskwise.onnxruntime.session(where, enable=1)  # type: ignore[arg-type]


def compiled(model: bytes) -> bytes:
    """Returns the model that ONNX Runtime saves for a later session."""
    session_options = options()
    session_options.add_provider_for_devices(maskwise.onnxruntime.register()[:1], {})
    return bytes(ort.ModelCompiler(session_options, model).compile_to_bytes())


@KINDS
def test_compiled_models(kind: str) -> None:
    """A saved model has no node of Maskwise, so it loads with or without Maskwise."""
    model, feeds, _ = example(kind)
    written = compiled(model)
    assert "EPContext" not in {node.op_type for node in onnx.load_from_string(written).graph.node}
    (expected,) = stock_session(model).run(None, feeds)
    for session in (maskwise.onnxruntime.session(written, options()), stock_session(written)):
        np.testing.assert_allclose(session.run(None, feeds)[0], expected, 2e-5, 2e-5)


@KINDS
def test_sessions_that_write_contexts(kind: str, tmp_path: Path, capfd: Any) -> None:
    model, feeds, _ = example(kind)
    session_options = options(maskwise_verbose="1")
    session_options.add_session_config_entry("ep.context_enable", "1")
    session_options.add_session_config_entry("ep.context_file_path", str(tmp_path / "context.onnx"))
    (tmp_path / "model.onnx").write_bytes(model)
    session = maskwise.onnxruntime.session(tmp_path / "model.onnx", session_options)
    (expected,) = stock_session(model).run(None, feeds)
    np.testing.assert_allclose(session.run(None, feeds)[0], expected, 2e-5, 2e-5)
    lines = capfd.readouterr().err
    assert kind == "where" or "ep.context_enable is 1" in lines, lines
