#include "interchange.hpp"

#include "dtypes.hpp"

#include <nanobind/ndarray.h>

#include <vector>

namespace maskwise::python {
namespace {

using any_array = nb::ndarray<nb::ro>;

nb::object dtype_for(nb::dlpack::dtype type) {
    using code = nb::dlpack::dtype_code;
    if (type.code == static_cast<std::uint8_t>(code::Bfloat) && type.bits == 16) {
        const nb::module_ types = nb::module_::import_("ml_dtypes");
        return MASKWISE_IMPORTED("numpy", "dtype")(types.attr("bfloat16"));
    }
    const char* kind = nullptr;
    switch (static_cast<code>(type.code)) {
    case code::Bool:
        kind = "b";
        break;
    case code::Int:
        kind = "i";
        break;
    case code::UInt:
        kind = "u";
        break;
    case code::Float:
        kind = "f";
        break;
    case code::Complex:
        kind = "c";
        break;
    default:
        break;
    }
    if (kind == nullptr || type.lanes != 1 || type.bits % 8 != 0) {
        PyErr_Format(PyExc_TypeError, "no NumPy dtype for DLPack's type code %d of %d bits",
                     int{type.code}, int{type.bits});
        throw nb::python_error();
    }
    std::string name(kind);
    name += std::to_string(type.bits / 8);
    return MASKWISE_IMPORTED("numpy", "dtype")(name.c_str());
}

nb::dlpack::dtype dlpack_type(data_type type) {
    const auto of = [&](nb::dlpack::dtype_code code) {
        return nb::dlpack::dtype{static_cast<std::uint8_t>(code),
                                 static_cast<std::uint8_t>(8 * width_bytes(type)), 1};
    };
    using code = nb::dlpack::dtype_code;
    switch (type) {
    case data_type::boolean:
        return of(code::Bool);
    case data_type::i8:
    case data_type::i16:
    case data_type::i32:
    case data_type::i64:
        return of(code::Int);
    case data_type::u8:
    case data_type::u16:
    case data_type::u32:
    case data_type::u64:
        return of(code::UInt);
    case data_type::f16:
    case data_type::f32:
    case data_type::f64:
        return of(code::Float);
    case data_type::bf16:
        return of(code::Bfloat);
    case data_type::complex64:
    case data_type::complex128:
        return of(code::Complex);
    default:
        throw nb::type_error("no DLPack type for this dtype");
    }
}

npy_intp bytes_of_stride(std::int64_t elements, npy_intp width) {
    npy_intp bytes = 0;
    if (!__builtin_mul_overflow(elements, width, &bytes)) return bytes;
    PyErr_Format(PyExc_BufferError, "a stride of %lld elements of %zd bytes is beyond 64 bits",
                 static_cast<long long>(elements), width);
    throw nb::python_error();
}

nb::object view_memory(const any_array& memory) {
    std::vector<npy_intp> extents, strides;
    nb::object dtype = dtype_for(memory.dtype());
    const auto width = static_cast<npy_intp>(memory.itemsize());
    for (std::size_t i = 0; i < memory.ndim(); ++i) {
        extents.push_back(static_cast<npy_intp>(memory.shape(i)));
        strides.push_back(bytes_of_stride(memory.stride(i), width));
    }
    nb::object array = own(PyArray_NewFromDescr(
        &PyArray_Type, as_dtype(dtype.release()), static_cast<int>(extents.size()), extents.data(),
        strides.data(), const_cast<void*>(memory.data()), 0, nullptr));
    nb::capsule owner(new any_array(memory),
                      [](void* kept) noexcept { delete static_cast<any_array*>(kept); });
    if (PyArray_SetBaseObject(as_array(array), owner.release().ptr()) != 0)
        throw nb::python_error();
    return array;
}

} // namespace

nb::object view_of(nb::handle foreign) {
    const nb::object device = foreign.attr("__dlpack_device__")();
    const nb::object type = nb::steal(PySequence_GetItem(device.ptr(), 0));
    const nb::object number = nb::steal(type ? PyNumber_Index(type.ptr()) : nullptr);
    if (!number) {
        PyErr_Format(PyExc_TypeError, "%s.__dlpack_device__() gave %R, no device of DLPack's",
                     Py_TYPE(foreign.ptr())->tp_name, device.ptr());
        throw nb::python_error();
    }
    if (!number.equal(nb::int_(int{nb::device::cpu::value}))) {
        PyErr_Format(PyExc_BufferError, "%s does not lie on the CPU but on DLPack's device %S",
                     Py_TYPE(foreign.ptr())->tp_name, device.ptr());
        throw nb::python_error();
    }
    // Asked by its method: nanobind, given the object, goes around a library that refuses.
    const nb::object given = foreign.attr("__dlpack__")();
    any_array memory;
    if (!nb::try_cast(given, memory)) {
        PyErr_Format(PyExc_TypeError, "%s.__dlpack__() gave %R, no unused tensor of DLPack's",
                     Py_TYPE(foreign.ptr())->tp_name, given.ptr());
        throw nb::python_error();
    }
    return view_memory(memory);
}

nb::object exported(nb::handle array) {
    PyArrayObject* const of = as_array(array);
    if (PyTypeNum_ISDATETIME(PyArray_TYPE(of))) throw nb::type_error("no DLPack type for dates");
    // Asked first: a structure may have no bytes, and strides are counted in elements.
    const nb::dlpack::dtype type = dlpack_type(type_of(PyArray_DESCR(of)));
    std::vector<std::size_t> extents;
    std::vector<std::int64_t> strides;
    for (int i = 0; i < PyArray_NDIM(of); ++i) {
        extents.push_back(static_cast<std::size_t>(PyArray_DIM(of, i)));
        strides.push_back(PyArray_STRIDE(of, i) / PyArray_ITEMSIZE(of));
    }
    return nb::cast(nb::ndarray<nb::array_api>(PyArray_DATA(of), extents.size(), extents.data(),
                                               array, strides.data(), type));
}

} // namespace maskwise::python
