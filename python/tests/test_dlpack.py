"""where() and select() read other libraries' arrays in place and return arrays of the same
library."""

from __future__ import annotations

from typing import Any

import maskwise
import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

c = np.array([True, False, True])


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16"]
    + ["float32", "complex64"],
)
def test_every_type_of_jax(dtype: str) -> None:
    x = jnp.array([[0, 1, 2], [3, 4, 5]], dtype)
    y = jnp.array([7, 8, 9], dtype)
    got = maskwise.where(jnp.array(c), x, y)
    assert isinstance(got, jax.Array) and got.dtype == x.dtype
    assert np.asarray(got).tobytes() == np.where(c, np.asarray(x), np.asarray(y)).tobytes()


def test_operands_are_not_copied() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    view = maskwise._core.view(x)
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    assert not view.flags.writeable


def test_the_result_is_not_copied() -> None:
    memory = np.empty(64 + 16, "f")
    start = -memory.ctypes.data % 64 // 4  # jax requires aligned memory
    result = memory[start : start + 64]
    answer = jnp.from_dlpack(maskwise._core.exported(result))
    assert answer.unsafe_buffer_pointer() == result.ctypes.data


def test_the_first_foreign_array_decides_the_result_type() -> None:
    x = jnp.arange(3.0)
    assert isinstance(maskwise.where(c, x, np.zeros(3, "f")), jax.Array)
    assert isinstance(maskwise.where(c, np.zeros(3, "f"), x), jax.Array)
    assert isinstance(maskwise.where(c, 1.0, x), jax.Array)
    assert maskwise.explain(c, 1.0, x).startswith("maskwise: ")


@pytest.mark.parametrize(
    "dialect", ["onednn_select", "openvino_select_1", "onnx_where_16", "onnx_where_9"]
)
def test_select_returns_arrays_of_the_first_library(dialect: Any) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    expected = np.where(c, np.asarray(x), np.zeros(3, "f"))
    for operands in ((jnp.array(c), x, jnp.zeros(3)), (c, np.asarray(x), jnp.zeros(3))):
        got = maskwise.select(*operands, dialect=dialect)
        assert isinstance(got, jax.Array) and got.dtype == x.dtype
        assert np.asarray(got).tobytes() == expected.tobytes()
    assert type(maskwise.select([True], [np.float32(1)], np.zeros(1, "f"))) is np.ndarray
    with pytest.raises(BufferError, match="OnAnotherDevice"):
        maskwise.select(c, OnAnotherDevice(), x)


class OfNoLibrary:
    """Exports DLPack from a module that has no from_dlpack."""

    def __init__(self) -> None:
        self.memory = np.arange(3, dtype="f")

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.memory.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.memory.__dlpack_device__()


def test_a_library_without_from_dlpack_is_refused() -> None:
    for call in (maskwise.where, maskwise.select):
        with pytest.raises(TypeError, match="test_dlpack, of OfNoLibrary, has no from_dlpack"):
            call(c, OfNoLibrary(), np.zeros(3, "f"))
    out = np.zeros(3, "f")
    assert maskwise.where(c, OfNoLibrary(), 0.0, out=out) is out
    assert out.tolist() == [0, 0, 2]


def test_out_may_be_a_numpy_array() -> None:
    out = np.zeros(3, "f")
    assert maskwise.where(c, jnp.arange(3.0), 0.0, out=out) is out
    assert out.tolist() == [0, 0, 2]


def test_an_immutable_out_is_not_written() -> None:
    out = jnp.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        maskwise.where(c, jnp.arange(3.0), 0.0, out=out)
    assert np.asarray(out).tolist() == [0, 0, 0]


def test_memory_lives_as_long_as_its_view() -> None:
    for _ in range(100):
        view = maskwise._core.view(jnp.arange(1000.0))
        assert view[999] == 999


class OnAnotherDevice:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("export of another device's memory")


def test_another_device_is_refused() -> None:
    with pytest.raises(BufferError, match=r"OnAnotherDevice.*\(2, 0\)"):
        maskwise.where(c, OnAnotherDevice(), 0.0)


class OnSomeDevice:
    def __init__(self, device: Any) -> None:
        self.device = device

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("export of a wrong device's memory")


@pytest.mark.parametrize("device", [("1", 0), (None, 0), "ab", (), 5, None, {}])
def test_a_wrong_device_is_refused(device: Any) -> None:
    with pytest.raises(TypeError, match=r"__dlpack_device__\(\) returned .*, not a DLPack device"):
        maskwise.where(c, OnSomeDevice(device), 0.0)


def test_a_device_of_a_large_number_is_not_the_cpu() -> None:
    with pytest.raises(BufferError, match="is not on the CPU"):
        maskwise.where(c, OnSomeDevice((2**70, 0)), 0.0)


def test_dates_cannot_be_exported() -> None:
    dates = np.zeros(3, "M8[s]")
    with pytest.raises(TypeError, match="dates"):
        maskwise.where(jnp.array(c), dates, dates)


@pytest.mark.parametrize("kind", ["U1", "g", [("a", "i4")], []])
def test_dtypes_that_cannot_be_exported(kind: Any) -> None:
    """The last dtype is a structure without fields, so its elements have 0 bytes."""
    x = np.zeros(3, kind)
    with pytest.raises(TypeError, match="no DLPack type"):
        maskwise.where(jnp.array(c), x, x)


class Refusing:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("would lose a gradient")


def test_a_librarys_own_error_is_passed_on() -> None:
    with pytest.raises(BufferError, match="would lose a gradient"):
        maskwise.where(c, Refusing(), 0.0)


class Once:
    """Returns the same object for each export. A capsule can be consumed only once."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return self.tensor


def test_a_used_or_wrong_capsule_is_refused() -> None:
    once = Once(np.arange(3.0).__dlpack__())
    assert maskwise._core.view(once).tolist() == [0, 1, 2]
    for foreign in (once, Once(5)):
        with pytest.raises(
            TypeError, match=r"Once\.__dlpack__\(\) returned .*, not an unused DLPack"
        ):
            maskwise._core.view(foreign)


@pytest.mark.parametrize("argument", [5, None, np.arange(3.0).__dlpack__])
def test_an_out_with_a_wrong_export_is_refused(argument: Any) -> None:
    with pytest.raises(TypeError, match="out is a Once that NumPy cannot write to"):
        maskwise.where(c, 1.0, 0.0, out=Once(argument))


class Deviceless:
    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("export of memory without a device")


def test_an_object_without_a_device_is_no_array() -> None:
    with pytest.raises(TypeError, match="object"):
        maskwise.attention(Deviceless(), Deviceless(), Deviceless())
    with pytest.raises(TypeError, match=r"out must be a numpy\.ndarray, not Deviceless"):
        maskwise.where(c, 1.0, 0.0, out=Deviceless())


class Negated:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("export of memory that does not have the tensor's values")

    def is_neg(self) -> bool:
        return True


def test_elements_that_are_negated_when_read_are_refused() -> None:
    with pytest.raises(BufferError, match="resolve_neg"):
        maskwise.where(c, Negated(), 0.0)
    with pytest.raises(BufferError, match="resolve_neg"):
        maskwise.where(c, np.zeros(3), 0.0, out=Negated())


@pytest.mark.parametrize(
    "name",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32"]
    + ["float64", "complex64", "complex128"],
)
def test_every_type_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6).reshape(3, 2).to(getattr(torch, name)).T  # not row-major
    y, mask = torch.tensor([7, 8, 9]).to(x.dtype), torch.tensor(c)
    got = maskwise.where(mask, x, y)
    assert got.dtype == x.dtype and torch.equal(got, torch.where(mask, x, y))


def test_tensors_that_are_refused() -> None:
    torch = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j, 3 - 1j, 2j])
    lazy = [z.conj(), z.conj().imag, z.real.clone().requires_grad_(), z.real.to_sparse()]
    for tensor in lazy:
        with pytest.raises(BufferError):
            maskwise.where(c, tensor, 0.0)
    for into in (z.conj(), z.real.to_sparse(), z.real.to("meta")):
        with pytest.raises(BufferError, match="does not have its elements in the CPU's memory"):
            maskwise.where(c, 0.0, 1.0, out=into)


def test_torch_operands_and_out() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6.0, dtype=torch.bfloat16).reshape(2, 3)
    got = maskwise.where(c, x, torch.tensor(7, dtype=torch.bfloat16))
    assert torch.equal(got, torch.where(torch.tensor(c), x, torch.tensor(7.0)).to(torch.bfloat16))
    out = torch.zeros(2, 3)
    assert maskwise.where(c, x.float(), 0.0, out=out) is out
    assert torch.equal(out, torch.where(torch.tensor(c), x.float(), 0.0))
