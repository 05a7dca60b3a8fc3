"""transformers models compiled and exported under "maskwise": graphs call Maskwise's operator with
rules, and results equal eager attention's."""

from __future__ import annotations

from typing import Any

import pytest

try:
    import maskwise.torch
    import maskwise.transformers
    import torch
    from maskwise._torch_version import READS_MASKS
    from test_transformers import (
        IS_OLD,
        VERSION,
        assert_close,
        model_of,
        outputs,
        padded,
        run_or_skip,
        words,
    )
    from transformers import AutoModelForCausalLM
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no transformers: scripts/setup --exporters")

CAUSAL = ("llama", "gemma2", "gemma3_text", "gpt_oss", "opt")
ARRAY, IS_CAUSAL, WINDOW, KEY_MASK = 3, 4, 8, 10  # positions of the operator's arguments


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Maskwise also runs small calls, except in tests whose names contain "small"."""
    torch._dynamo.reset()
    if "small" not in request.node.name:
        monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)


class Graphs:
    """A torch.compile backend that records graphs and runs them unchanged."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs.append(graph)
        return graph

    def calls(self) -> list[Any]:
        return [call for graph in self.graphs for call in calls_in(graph)]


def calls_in(graph: Any) -> list[Any]:
    nodes = [node for node in graph.graph.nodes if "maskwise" in str(node.target)]
    return [(*node.args, *(None,) * (13 - len(node.args))) for node in nodes]


def options_of(family: str) -> dict[str, bool]:
    return {"use_cache": False} if family in CAUSAL else {}


@pytest.mark.parametrize("pad", [None, "left", "right", "holes"])
@pytest.mark.parametrize("family", [*CAUSAL, "bert", "modernbert"])
def test_rules_stay_rules_in_a_compiled_model(family: str, pad: str | None) -> None:
    model, options = model_of(family), options_of(family)
    mask = None if pad is None else padded(pad)
    results = outputs(model, input_ids=words(), attention_mask=mask, **options)
    backend = Graphs()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with torch.no_grad():
        inputs = {"input_ids": words(), "attention_mask": mask, **options}
        actual = run_or_skip(model, lambda: compiled(**inputs))[0]
    assert_close({"maskwise": actual, "eager": results["eager"]}, mask)
    calls = backend.calls()
    assert len(backend.graphs) == 1 and len(calls) == model.config.num_hidden_layers
    if READS_MASKS and not (family == "opt" and VERSION < (5, 3)):  # an old OPT computes an array
        assert not any(call[ARRAY] for call in calls)
        # Without padding, old releases pass a mask of ones to OPT, and ModernBERT's window.
        has_key_mask = pad is not None or (IS_OLD and family == "opt")
        assert all((call[KEY_MASK] is not None) == has_key_mask for call in calls)
        assert all(call[IS_CAUSAL] == (family in CAUSAL) for call in calls)
        # ModernBERT's window covers all tokens, so the model needs no mask without padding.
        has_window = family in ("gemma2", "gemma3_text", "gpt_oss") or (
            family == "modernbert" and (pad is not None or IS_OLD)
        )
        assert any(call[WINDOW] is not None for call in calls) == has_window


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_packed_documents_are_rules_too(family: str) -> None:
    """A document starts where position_ids restart."""
    model, options, backend = model_of(family), options_of(family), Graphs()
    positions = torch.cat([torch.arange(23), torch.arange(37)])[None].expand(2, -1)
    inputs = {"input_ids": words(), "position_ids": positions, **options}
    results = outputs(model, **inputs)
    with torch.no_grad():
        actual = torch.compile(model, backend=backend, fullgraph=True)(**inputs)[0]
    assert_close({"maskwise": actual, "eager": results["eager"]})
    if READS_MASKS:
        assert not any(call[ARRAY] for call in backend.calls())


def test_lengths_share_a_graph() -> None:
    model, backend = model_of("gemma3_text"), Graphs()
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for length in (60, 61, 90, 33, 120):
        inputs = {"input_ids": words(length), "attention_mask": padded("left", length)}
        results = outputs(model, **inputs, use_cache=False)
        with torch.no_grad():
            actual = compiled(**inputs, use_cache=False)[0]
        assert_close({"maskwise": actual, "eager": results["eager"]}, inputs["attention_mask"])
    assert len(backend.graphs) == 1


@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_a_static_cache_takes_two_graphs(family: str) -> None:
    model, backend = model_of(family, AutoModelForCausalLM), Graphs()
    options = {"max_new_tokens": 6, "do_sample": False, "cache_implementation": "static"}
    inputs = {"inputs": words(), "attention_mask": padded("left")}
    eager = model.generate(**inputs, **options)
    model.set_attn_implementation("maskwise")
    model.forward = torch.compile(model.forward, backend=backend, fullgraph=True)
    assert torch.equal(model.generate(**inputs, **options, disable_compile=True), eager)
    assert len(backend.graphs) == 2
    assert len(backend.calls()) == 2 * model.config.num_hidden_layers


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_exported_models_keep_rules(family: str, strict: bool) -> None:
    model, options = model_of(family), options_of(family)

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def forward(self, ids: Any, mask: Any) -> Any:
            return model(input_ids=ids, attention_mask=mask, **options)[0]

    few, many = ((words(length), padded("left", length)) for length in (20, 200))
    length = {1: torch.export.Dim("L", min=2, max=256)}
    model.set_attn_implementation("maskwise")
    with torch.no_grad():
        shapes = (length, length)
        exported = run_or_skip(
            model,
            lambda: torch.export.export(Whole(), few, dynamic_shapes=shapes, strict=strict),
        )
        calls = calls_in(exported)
        assert len(calls) == 2
        assert not any(call[ARRAY] for call in calls) or (strict and not READS_MASKS)
        eager = outputs(model, input_ids=many[0], attention_mask=many[1], **options)["eager"]
        for program in (exported, exported.run_decompositions()):
            assert_close({"maskwise": program.module()(*many), "eager": eager}, many[1])


def test_torch_runs_small_calls() -> None:
    model, backend = model_of("bert"), Graphs()
    results = outputs(model, input_ids=words(), attention_mask=padded("right"))
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with torch.no_grad():
        actual = compiled(input_ids=words(), attention_mask=padded("right"))[0]
    assert not backend.calls()
    assert_close({"maskwise": actual, "eager": results["eager"]}, padded("right"))


def test_training_step_has_the_gradients_of_sdpa() -> None:
    model, backend = model_of("llama"), Graphs()
    inputs = {"input_ids": words(), "attention_mask": padded("right"), "use_cache": False}
    gradients = {}
    for name in ("sdpa", "maskwise"):
        model.set_attn_implementation(name)
        torch._dynamo.reset()
        model.zero_grad()
        torch.compile(model, backend=backend)(**inputs)[0].square().sum().backward()
        gradients[name] = [one.grad.clone() for one in model.parameters() if one.grad is not None]
    assert backend.calls()
    for one, other in zip(*gradients.values(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_onnx_gets_torchs_operators() -> None:
    pytest.importorskip("onnxscript")
    model = model_of("bert")
    model.set_attn_implementation("maskwise")
    program = torch.onnx.export(model, (words(), padded("right")), dynamo=True, verbose=False)
    assert not any("maskwise" in str(node) for node in program.model.graph)


def test_inductor_runs_the_operator() -> None:
    """Inductor, the default backend of torch.compile, generates the code around the operator."""
    model = model_of("bert", num_hidden_layers=1)
    results = outputs(model, input_ids=words(), attention_mask=padded("left"))
    with torch.no_grad():
        actual = torch.compile(model)(input_ids=words(), attention_mask=padded("left"))[0]
    assert_close({"maskwise": actual, "eager": results["eager"]}, padded("left"))
