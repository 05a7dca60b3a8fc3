"""Tests the package flash_attn that maskwise.flash_attn.install() provides."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_tensors import draw

try:
    import torch
    from maskwise import flash_attn
except ModuleNotFoundError:
    pytest.skip("no PyTorch: scripts/setup --torch", allow_module_level=True)

if importlib.util.find_spec("flash_attn") is not None:
    pytest.skip("flash_attn is installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def fixture_installed() -> Iterator[None]:
    assert flash_attn.install()
    yield
    flash_attn.uninstall()


def test_the_package_has_the_names_of_flash_attn() -> None:
    package = import_module("flash_attn")
    assert package.__version__.split(".")[0] == "2"
    assert import_module("flash_attn.bert_padding").pad_input is package.bert_padding.pad_input
    for module in (package, import_module("flash_attn.flash_attn_interface")):
        for name in flash_attn.__all__[:3]:
            assert getattr(module, name) is getattr(flash_attn, name)
    assert importlib.util.find_spec("flash_attn") is package.__spec__
    with pytest.raises(ModuleNotFoundError):
        import_module("flash_attn.layers.rotary")
    assert flash_attn.install()
    assert import_module("flash_attn") is package


def test_uninstall_removes_the_package() -> None:
    flash_attn.uninstall()
    flash_attn.uninstall()
    assert not any(name.partition(".")[0] == "flash_attn" for name in sys.modules)
    with pytest.raises(ModuleNotFoundError):
        import_module("flash_attn")


def test_an_installed_package_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flash_attn.uninstall()
    (tmp_path / "flash_attn").mkdir()
    (tmp_path / "flash_attn/__init__.py").write_text("__version__ = 'of others'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for _ in range(2):
        assert not flash_attn.install()
        assert import_module("flash_attn").__version__ == "of others"
        flash_attn.uninstall()
    del sys.modules["flash_attn"]


def test_install_does_nothing_on_a_machine_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    flash_attn.uninstall()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert not flash_attn.install()
    assert "flash_attn" not in sys.modules


def test_transformers_sees_no_flash_attn() -> None:
    code = (
        "import maskwise.flash_attn as one; assert one.install();"
        "from transformers.utils import is_flash_attn_2_available as is_there; print(is_there())"
    )
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("no transformers: scripts/setup --exporters")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.stdout == "False\n", ran.stderr


def test_maskwise_run_provides_the_package(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from flash_attn.bert_padding import unpad_input; print(unpad_input)")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "maskwise", "run", str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.stdout.startswith("<function unpad_input"), ran.stderr


@given(st.data())
def test_unpad_and_pad(data: st.DataObject) -> None:
    padding = import_module("flash_attn.bert_padding")
    batch, length = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 7))
    bits = st.lists(st.integers(0, 1), min_size=batch * length, max_size=batch * length)
    mask, unused = (torch.tensor(data.draw(bits)).view(batch, length) for _ in range(2))
    unused = unused * (1 - mask)
    x = draw(batch, length, 2, 3, seed=data.draw(st.integers(0, 9))).requires_grad_()
    for others, stays in ((None, mask), (unused, mask + unused)):
        rows, indices, bounds, longest, used = padding.unpad_input(x, mask, others)
        lengths = [sum(one) for one in stays.tolist()]
        assert torch.equal(rows, x[stays.bool()])
        assert indices.tolist() == [i for i, one in enumerate(stays.flatten().tolist()) if one]
        assert bounds.dtype == used.dtype == torch.int32 and longest == max(lengths)
        assert bounds.tolist() == [sum(lengths[:i]) for i in range(batch + 1)]
        assert used.tolist() == mask.sum(1).tolist()
        padded = padding.pad_input(rows, indices, batch, length)
        assert torch.equal(padded, x * stays[..., None, None])
        (gradient,) = torch.autograd.grad(padded.sum(), x)
        assert torch.equal(gradient, stays[..., None, None].expand_as(x).float())


def test_unpad_concatenated_sequences() -> None:
    """The example in the docstring of flash_attn's function."""
    unpad = import_module("flash_attn.bert_padding").unpad_input_for_concatenated_sequences
    lengths = torch.tensor([[2, 3, 0, 0, 0, 0], [3, 2, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0]])
    x = draw(3, 6, 4)
    rows, indices, bounds, longest = unpad(x, lengths)
    assert indices.tolist() == [*range(5), *range(6, 11), *range(12, 18)]
    assert torch.equal(rows, x.flatten(0, 1)[indices])
    assert (bounds.tolist(), longest) == ([0, 2, 5, 8, 10, 16], 6)


def test_packed_operands() -> None:
    package = import_module("flash_attn")
    qkv = draw(2, 9, 3, 4, 8)
    q, k, v = qkv.unbind(2)
    options: dict[str, Any] = {"causal": True, "window_size": (4, 0)}
    wanted = flash_attn.flash_attn_func(q, k, v, 0.0, 0.3, **options)
    assert torch.equal(package.flash_attn_qkvpacked_func(qkv, 0.0, 0.3, **options), wanted)
    assert torch.equal(
        package.flash_attn_kvpacked_func(q, qkv[:, :, 1:], 0.0, 0.3, **options), wanted
    )
    bounds, flat = torch.tensor([0, 9, 18], dtype=torch.int32), qkv.flatten(0, 1)
    got = package.flash_attn_varlen_qkvpacked_func(flat, bounds, 9, 0.0, 0.3, **options)
    torch.testing.assert_close(got, wanted.flatten(0, 1), atol=2e-5, rtol=2e-5)
    both = (bounds, bounds, 9, 9, 0.0, 0.3)
    other = package.flash_attn_varlen_kvpacked_func(flat[:, 0], flat[:, 1:], *both, **options)
    assert torch.equal(got, other)


def test_a_padded_batch() -> None:
    """Unpads, runs attention and pads, as models with remote code do."""
    package = import_module("flash_attn")
    mask = torch.tensor([[1] * 5 + [0] * 4, [1] * 9])
    q, k, v = (draw(2, 9, 4, 8, seed=seed) for seed in range(3))
    rows, indices, bounds, longest, _ = package.bert_padding.unpad_input(
        torch.stack([q, k, v], 2), mask
    )
    out = package.flash_attn_varlen_qkvpacked_func(rows, bounds, longest, causal=True)
    got = package.bert_padding.pad_input(out, indices, 2, 9)
    for i, length in enumerate((5, 9)):
        one = [each[i : i + 1, :length] for each in (q, k, v)]
        wanted = flash_attn.flash_attn_func(*one, causal=True)
        torch.testing.assert_close(got[i : i + 1, :length], wanted, atol=2e-5, rtol=2e-5)
    assert not got[0, 5:].any()
