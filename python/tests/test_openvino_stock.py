"""A model is OpenVINO's own to everybody but the CPU plugin, which compiles a clone of it."""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
import pytest
from arrays import Array, assert_same_bits
from openvino import opset13 as ops
from openvino import passes
from select_models import SETTINGS, compile_model, count_taken, kinds_of_run, run, select_model

accelerate = maskwise.openvino.accelerate
TAKEN = [[128, 128]] * 3
SHAPE = [2, 4, 96, 96]
Change = Callable[[ov.Model, Path], ov.Model]


def chain_model() -> ov.Model:
    mask, x = ops.parameter([96, 96], ov.Type.boolean), ops.parameter(SHAPE, ov.Type.f32)
    masked = ops.select(mask, ops.multiply(x, np.float32(0.125)), np.float32(-np.inf))
    return ov.Model([ops.softmax(masked, -1)], [mask, x])


def attention_model() -> ov.Model:
    mask = ops.parameter([96, 96], ov.Type.boolean)
    inputs = [ops.parameter([2, 4, 96, 32], ov.Type.f32) for _ in "qkv"]
    scores = ops.matmul(inputs[0], inputs[1], False, True)
    weights = ops.softmax(ops.select(mask, scores, np.float32(-np.inf)), -1)
    return ov.Model([ops.matmul(weights, inputs[2], False, False)], [mask, *inputs])


def old_chain_model() -> ov.Model:
    """Softmax of opset1, which has its axis without a sign."""
    mask, x = ops.parameter([96, 96], ov.Type.boolean), ops.parameter(SHAPE, ov.Type.f32)
    return ov.Model([ov.opset1.softmax(ops.select(mask, x, np.float32(-9)), 3)], [mask, x])


def read_model() -> ov.Model:
    core = ov.Core()
    core.add_extension(maskwise.openvino.library())
    from_stock = select_model(TAKEN)
    return core.read_model(*text_of(from_stock))


def text_of(model: ov.Model) -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        passes.Serialize(str(path), str(path.with_suffix(".bin"))).run_on_model(model)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


SOURCES: dict[str, Callable[[], ov.Model]] = {
    "read": read_model,
    "accelerated": lambda: accelerate(select_model(TAKEN)),
    "forced": lambda: accelerate(select_model([[3, 4]] * 3, ov.Type.f16), force=True),
    "chain": lambda: accelerate(chain_model()),
    "old_chain": lambda: accelerate(old_chain_model()),
    "attention": lambda: accelerate(attention_model()),
    "read_and_accelerated": lambda: accelerate(read_model()),
}


def operators(model: ov.Model) -> list[tuple[str, str]]:
    types = [node.get_type_info() for node in model.get_ordered_ops()]
    return [(kind.name, kind.version_id) for kind in types]


def arrays_of(model: ov.Model) -> list[Array]:
    random = np.random.default_rng(3)
    draws = (random.random(tuple(port.shape)) for port in model.inputs)
    return [
        array < 0.5
        if port.element_type == ov.Type.boolean
        else array.astype(port.element_type.to_dtype())
        for array, port in zip(draws, model.inputs, strict=True)
    ]


def own_of(model: ov.Model) -> ov.Model:
    """The same, without Maskwise, whichever way."""
    xml, weights = text_of(model)
    assert b"maskwise" not in xml.lower()
    return ov.Core().read_model(xml, weights)


def check_results(model: ov.Model, compiled: Any, atol: float = 1e-6) -> None:
    arrays = arrays_of(model)
    expected, got = run(compile_model(own_of(model)), arrays), run(compiled, arrays)
    if "Softmax" in dict(operators(model)):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=atol)
    else:
        assert_same_bits(got, expected)


@pytest.mark.parametrize("source", SOURCES)
def test_it_shows_nothing_of_maskwise(source: str) -> None:
    model = SOURCES[source]()
    assert {version for _, version in operators(model)} <= {"opset1", "opset8"}
    assert {kind for kind, _ in operators(model)} <= {
        "Parameter", "Constant", "Select", "Multiply", "MatMul", "Softmax", "Result",
    }  # fmt: skip


def by_save(model: ov.Model, folder: Path, **options: Any) -> ov.Model:
    ov.save_model(model, folder / "saved.xml", **options)
    return ov.Core().read_model(folder / "saved.xml")


def by_serialize(model: ov.Model, folder: Path) -> ov.Model:
    manager = passes.Manager()
    manager.register_pass(passes.Serialize(str(folder / "a.xml"), str(folder / "a.bin")))
    manager.run_passes(model)
    return ov.Core().read_model(folder / "a.xml")


SAVES: dict[str, Change] = {
    "save_model": by_save,
    "save_model_f32": lambda model, folder: by_save(model, folder, compress_to_fp16=False),
    "serialize": by_serialize,
    "clone_saved": lambda model, folder: by_save(model.clone(), folder, compress_to_fp16=False),
    "copy_serialized": lambda model, folder: by_serialize(copy.deepcopy(model), folder),
}


@pytest.mark.parametrize(("source", "save"), list(itertools.product(SOURCES, SAVES)))
def test_any_core_reads_what_is_saved(source: str, save: str, tmp_path: Path) -> None:
    model = SOURCES[source]()
    before = operators(model)
    read = SAVES[save](model, tmp_path)
    assert "maskwise" not in "".join(path.read_text() for path in tmp_path.glob("*.xml")).lower()
    assert operators(model) == before
    if save != "save_model":  # which compresses constants
        assert sorted(operators(read)) == sorted(before)
    compiled = compile_model(read)
    assert count_taken(compiled) == 0
    check_results(model, compiled)


COPIES: dict[str, Change] = {
    "itself": lambda model, _: model,
    "clone": lambda model, _: model.clone(),
    "clone_of_clone": lambda model, _: model.clone().clone(),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "reshaped": lambda model, _: reshaped(model.clone()),
}


def reshaped(model: ov.Model) -> ov.Model:
    model.reshape(
        {port: [*port.shape[:-2], *(2 * n for n in port.shape[-2:])] for port in model.inputs}
    )
    return model


@pytest.mark.parametrize(("source", "change"), list(itertools.product(SOURCES, COPIES)))
def test_a_copy_is_as_good(source: str, change: str, tmp_path: Path) -> None:
    """Compiled by a core that does not have the extension."""
    model = COPIES[change](SOURCES[source](), tmp_path)
    assert {version for _, version in operators(model)} <= {"opset1", "opset8"}
    compiled = compile_model(model)
    assert count_taken(compiled) == 1
    check_results(model, compiled)


@pytest.mark.parametrize("source", SOURCES)
def test_an_edit_is_seen(source: str) -> None:
    """The choice is that of the model as it is compiled, and cannot outlive the form."""
    model = SOURCES[source]().clone()
    found: list[str] = []

    class Find(passes.MatcherPass):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            matcher = passes.Matcher(passes.WrapType("opset1.Select"), "Find")
            self.register_matcher(matcher, self.note)

        def note(self, matcher: passes.Matcher) -> bool:
            found.append(matcher.get_match_root().get_type_name())
            return False

    manager = passes.Manager()
    manager.register_pass(Find())
    manager.run_passes(model)
    assert found == ["Select"]
    (select,) = (node for node in model.get_ordered_ops() if node.get_type_name() == "Select")
    model.add_results([ops.result(ops.relu(ops.convert(select, "f32")))])
    compiled = compile_model(model)
    # A Select that is not between inputs and outputs is left alone, but where a user asked for it.
    assert count_taken(compiled) == (1 if "accelerated" in source or source == "forced" else 0)
    check_results(model, compiled)


@pytest.mark.parametrize("source", ["read", "chain", "attention"])
@pytest.mark.parametrize("device", ["HETERO:CPU", "AUTO:CPU", "BATCH:CPU", "MULTI:CPU"])
def test_devices_behind_which_the_cpu_is(source: str, device: str) -> None:
    model = SOURCES[source]()
    core = ov.Core()
    settings = SETTINGS if device.startswith("AUTO") else {}
    compiled = core.compile_model(model, device, settings)
    if "HETERO" not in device and "BATCH" not in device:
        assert "Reference" in kinds_of_run(compiled)
    # Behind some devices OpenVINO computes in bf16, where the CPU does.
    check_results(model, compiled, 1e-6 if settings else 0.02)
    names = {node.get_friendly_name() for node in model.get_ordered_ops()}
    assert set(core.query_model(model, "CPU")) == names


def test_a_cache_is_for_every_core(tmp_path: Path) -> None:
    xml, weights = text_of(select_model(TAKEN))
    seen = []
    for extends in (True, True, False, False, True):
        core = ov.Core()
        core.set_property({"CACHE_DIR": str(tmp_path / "cache")})
        if extends:
            core.add_extension(maskwise.openvino.library())
        model = core.read_model(xml, weights)
        compiled = core.compile_model(model, "CPU", SETTINGS)
        check_results(model, compiled)
        seen.append((count_taken(compiled), compiled.get_property("LOADED_FROM_CACHE")))
    # A core that cannot read an entry compiles, and puts its own there.
    assert seen == [(1, False), (1, True), (0, False), (0, True), (0, True)]
