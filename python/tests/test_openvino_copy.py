"""`accelerate` does not change the model. Programs can use the copy like any OpenVINO model."""

from __future__ import annotations

import copy
import itertools
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
from select_models import SETTINGS, accelerate, compile_model, count_taken, run, select_model

SHAPE = [2, 4, 96, 96]
MASKED = np.float32(-np.inf)
Change = Callable[[ov.Model, Path], ov.Model]


def chain_model() -> ov.Model:
    mask, x = ops.parameter([96, 96], ov.Type.boolean), ops.parameter(SHAPE, ov.Type.f32)
    masked = ops.select(mask, ops.multiply(x, np.float32(0.125)), MASKED)
    return ov.Model([ops.softmax(masked, -1)], [mask, x])


def old_chain_model() -> ov.Model:
    """A chain with Softmax of opset1, whose axis is unsigned."""
    mask, x = ops.parameter([96, 96], ov.Type.boolean), ops.parameter(SHAPE, ov.Type.f32)
    return ov.Model([ov.opset1.softmax(ops.select(mask, x, np.float32(-9)), 3)], [mask, x])


def attention_model(whole: bool = False) -> ov.Model:
    mask = ops.parameter([96, 96], ov.Type.boolean)
    inputs = [ops.parameter([2, 4, 96, 32], ov.Type.f32) for _ in "qkv"]
    if whole:
        result = ops.scaled_dot_product_attention(*inputs, mask)
    else:
        scores = ops.matmul(inputs[0], inputs[1], False, True)
        weights = ops.softmax(ops.select(mask, scores, MASKED), -1)
        result = ops.matmul(weights, inputs[2], False, False)
    return ov.Model([result], [mask, *inputs])


SOURCES: dict[str, Callable[[], ov.Model]] = {
    "select": lambda: select_model([[128, 128]] * 3),
    "chain": chain_model,
    "old_chain": old_chain_model,
    "attention": attention_model,
    "whole_attention": lambda: attention_model(whole=True),
}


def operators(model: ov.Model) -> list[tuple[str, str, str]]:
    nodes = model.get_ordered_ops()
    types = [(node.get_type_info(), node.get_friendly_name()) for node in nodes]
    return [(kind.name, kind.version_id, name) for kind, name in types]


def arrays_of(model: ov.Model) -> list[Array]:
    random = np.random.default_rng(3)
    draws = (random.random(tuple(port.shape)) for port in model.inputs)
    return [
        array < 0.5 if port.element_type == ov.Type.boolean else array.astype(np.float32)
        for array, port in zip(draws, model.inputs, strict=True)
    ]


def check_results(stock: ov.Model, compiled: Any, atol: float = 1e-6) -> None:
    arrays = arrays_of(stock)
    expected, got = run(compile_model(stock), arrays), run(compiled, arrays)
    if "Select" in operators(stock)[-2]:
        assert_same_bits(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=atol)


def extended() -> ov.Core:
    core = ov.Core()
    core.add_extension(maskwise.openvino.library())
    return core


def by_save(model: ov.Model, folder: Path) -> ov.Model:
    ov.save_model(model, folder / "saved.xml", compress_to_fp16=False)
    return extended().read_model(folder / "saved.xml")


def by_serialize(model: ov.Model, folder: Path) -> ov.Model:
    manager = passes.Manager()
    manager.register_pass(passes.Serialize(str(folder / "a.xml"), str(folder / "a.bin")))
    manager.run_passes(model)
    return extended().read_model(folder / "a.xml")


def reshaped(model: ov.Model) -> ov.Model:
    """Doubles the last two dimensions of each input."""
    model.reshape(
        {port: [*port.shape[:-2], *(2 * n for n in port.shape[-2:])] for port in model.inputs}
    )
    return model


@pytest.mark.parametrize("source", SOURCES)
def test_the_model_is_unchanged(source: str, tmp_path: Path) -> None:
    """A core without the extension reads the saved model."""
    model = SOURCES[source]()
    before = operators(model)
    assert count_taken(accelerate(model)) == 1
    assert operators(model) == before
    ov.save_model(model, tmp_path / "saved.xml")
    ov.Core().read_model(tmp_path / "saved.xml")
    assert "maskwise" not in (tmp_path / "saved.xml").read_text()


CHANGES: dict[str, Change] = {
    "itself": lambda model, _: model,
    "clone": lambda model, _: model.clone(),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "saved": by_save,
    "saved_clone": lambda model, folder: by_save(model.clone(), folder),
    "serialized": by_serialize,
    "accelerated_again": lambda model, _: accelerate(model, force=True),
}


@pytest.mark.parametrize(("source", "change"), list(itertools.product(SOURCES, CHANGES)))
def test_a_changed_copy_is_still_accelerated(source: str, change: str, tmp_path: Path) -> None:
    """A core without the extension compiles the copy."""
    stock = SOURCES[source]()
    model = CHANGES[change](accelerate(stock), tmp_path)
    compiled = compile_model(model)
    assert count_taken(compiled) == 1
    check_results(stock, compiled)
    check_results(reshaped(stock), compile_model(reshaped(model)))


@pytest.mark.parametrize(("whole", "rank"), [(True, 3), (False, 3), (False, 2)])
def test_a_rank_that_a_reshape_changes(whole: bool, rank: int) -> None:
    stock = attention_model(whole)
    model = accelerate(stock)
    for each in (stock, model):
        each.reshape({port: list(port.shape)[-rank:] for port in each.inputs})
    check_results(stock, compile_model(model))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("device", ["HETERO:CPU", "AUTO:CPU", "BATCH:CPU", "MULTI:CPU"])
def test_devices_that_use_the_cpu(source: str, device: str) -> None:
    stock, core = SOURCES[source](), ov.Core()
    model = accelerate(stock)
    settings = SETTINGS if device.startswith("AUTO") else {}
    # Some devices do not pass on the precision. OpenVINO then computes in bf16 on some CPUs.
    check_results(stock, core.compile_model(model, device, settings), 1e-6 if settings else 0.02)
    names = {node.get_friendly_name() for node in model.get_ordered_ops()}
    assert set(core.query_model(model, "CPU")) == names


@pytest.mark.parametrize("source", SOURCES)
def test_an_export_is_imported(source: str) -> None:
    stock = SOURCES[source]()
    blob = compile_model(accelerate(stock)).export_model()
    imported = extended().import_model(blob, "CPU", SETTINGS)
    assert count_taken(imported) == 1
    check_results(stock, imported)
    with pytest.raises(RuntimeError):
        ov.Core().import_model(blob, "CPU", SETTINGS)


@pytest.mark.parametrize("source", SOURCES)
def test_cores_with_and_without_the_extension_share_a_cache(source: str, tmp_path: Path) -> None:
    """A core without the extension cannot read an accelerated model's cache entry, so the core
    compiles the model again."""
    stock = SOURCES[source]()
    seen = []
    for core in (extended(), extended(), ov.Core(), ov.Core(), extended()):
        core.set_property({"CACHE_DIR": str(tmp_path / "cache")})
        for model, taken in ((accelerate(stock), 1), (stock, 0)):
            compiled = core.compile_model(model, "CPU", SETTINGS)
            assert count_taken(compiled) == taken
            check_results(stock, compiled)
            seen.append(bool(compiled.get_property("LOADED_FROM_CACHE")))
    assert seen == [False, False, True, True, False, True, False, True, True, True]
