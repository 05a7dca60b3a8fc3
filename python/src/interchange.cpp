#include "entries.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace maskwise::python {
namespace {

using any_array = nb::ndarray<nb::ro>;

// DLPack's codes and NumPy's letters. NumPy has no letter for bfloat16.
struct kind {
    nb::dlpack::dtype_code code;
    char letter;
};
constexpr kind kinds[] = {{nb::dlpack::dtype_code::Bool, 'b'},
                          {nb::dlpack::dtype_code::Int, 'i'},
                          {nb::dlpack::dtype_code::UInt, 'u'},
                          {nb::dlpack::dtype_code::Float, 'f'},
                          {nb::dlpack::dtype_code::Complex, 'c'}};
constexpr auto bfloat = nb::dlpack::dtype_code::Bfloat;

nb::object dtype_for(nb::dlpack::dtype type) {
    const nb::handle dtype = MASKWISE_IMPORTED("numpy", "dtype");
    const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
    if (code == bfloat && type.bits == 16) return nb::borrow<nb::object>(bfloat16_bits());
    const auto* const entry = std::ranges::find(kinds, code, &kind::code);
    if (entry == std::end(kinds) || type.lanes != 1 || type.bits % 8 != 0)
        refuse(PyExc_TypeError, "no NumPy dtype for DLPack's type code %d of %d bits",
               int{type.code}, int{type.bits});
    return dtype((entry->letter + std::to_string(type.bits / 8)).c_str());
}

nb::dlpack::dtype dlpack_type(PyArray_Descr* dtype) {
    const data_type type = type_of(dtype);
    if (type == data_type::undef) throw nb::type_error("no DLPack type for this dtype");
    const auto* const entry = std::ranges::find(kinds, dtype->kind, &kind::letter);
    const auto code = type == data_type::bf16 ? bfloat : entry->code;
    return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * width_bytes(type)), 1};
}

npy_intp bytes_of_stride(std::int64_t elements, npy_intp width) {
    npy_intp bytes = 0;
    if (!__builtin_mul_overflow(elements, width, &bytes)) return bytes;
    refuse(PyExc_BufferError, "a stride of %lld elements of %zd bytes is beyond 64 bits",
           static_cast<long long>(elements), width);
}

// An array over memory that `owner` keeps alive. Strides are in elements.
nb::object make_array(void* data, std::span<const std::int64_t> extents,
                      std::span<const std::int64_t> strides, nb::object dtype, int flags,
                      nb::object owner) {
    const npy_intp width = PyDataType_ELSIZE(as_dtype(dtype));
    std::vector<npy_intp> strides_bytes;
    for (const std::int64_t stride : strides)
        strides_bytes.push_back(bytes_of_stride(stride, width));
    nb::object array = new_reference(PyArray_NewFromDescr(
        &PyArray_Type, as_dtype(dtype.release()), static_cast<int>(extents.size()), extents.data(),
        strides_bytes.data(), data, flags, nullptr));
    if (PyArray_SetBaseObject(as_array(array), owner.release().ptr()) != 0)
        throw nb::python_error();
    return array;
}

nb::object view_memory(const any_array& memory) {
    const std::span extents(memory.shape_ptr(), memory.ndim());
    const std::span strides(memory.stride_ptr(), memory.ndim());
    nb::capsule owner(new any_array(memory),
                      [](void* copy) noexcept { delete static_cast<any_array*>(copy); });
    return make_array(const_cast<void*>(memory.data()), extents, strides, dtype_for(memory.dtype()),
                      0, std::move(owner));
}

} // namespace

nb::object view_at(std::uintptr_t address, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& strides, nb::object dtype, nb::object owner) {
    return make_array(reinterpret_cast<void*>(address), extents, strides, std::move(dtype),
                      NPY_ARRAY_WRITEABLE, std::move(owner));
}

nb::object view_of(nb::handle foreign) {
    const nb::object device = foreign.attr("__dlpack_device__")();
    const nb::object type = nb::steal(PySequence_GetItem(device.ptr(), 0));
    const nb::object number = nb::steal(type ? PyNumber_Index(type.ptr()) : nullptr);
    if (!number)
        refuse(PyExc_TypeError, "%s.__dlpack_device__() returned %R, not a DLPack device",
               type_name_of(foreign).c_str(), device.ptr());
    if (!number.equal(nb::int_(int{nb::device::cpu::value})))
        refuse(PyExc_BufferError, "%s is not on the CPU but on DLPack device %S",
               type_name_of(foreign).c_str(), device.ptr());
    // Calls the method, because nanobind would bypass a library that refuses the export.
    const nb::object capsule = foreign.attr("__dlpack__")();
    any_array memory;
    if (!nb::try_cast(capsule, memory))
        refuse(PyExc_TypeError, "%s.__dlpack__() returned %R, not an unused DLPack tensor",
               type_name_of(foreign).c_str(), capsule.ptr());
    if (memory.data() == nullptr && memory.size() != 0)
        refuse(PyExc_BufferError, "the elements of this %s have no memory",
               type_name_of(foreign).c_str());
    return view_memory(memory);
}

nb::object exported(nb::handle array) {
    PyArrayObject* const numpy_array = as_array(array);
    if (PyTypeNum_ISDATETIME(PyArray_TYPE(numpy_array)))
        throw nb::type_error("no DLPack type for dates");
    // Checked first: a structured dtype may have 0 bytes, and strides are divided by the item size.
    const nb::dlpack::dtype type = dlpack_type(PyArray_DESCR(numpy_array));
    std::vector<std::size_t> extents;
    std::vector<std::int64_t> strides;
    for (int i = 0; i < PyArray_NDIM(numpy_array); ++i) {
        extents.push_back(static_cast<std::size_t>(PyArray_DIM(numpy_array, i)));
        strides.push_back(PyArray_STRIDE(numpy_array, i) / PyArray_ITEMSIZE(numpy_array));
    }
    return nb::cast(nb::ndarray<nb::array_api>(PyArray_DATA(numpy_array), extents.size(),
                                               extents.data(), array, strides.data(), type));
}

} // namespace maskwise::python
