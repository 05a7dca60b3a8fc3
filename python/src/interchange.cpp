#include "entries.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace maskwise::python {
namespace {

using any_array = nb::ndarray<nb::ro>;

// DLPack's type codes and NumPy's kind letters. NumPy has no letter for bfloat16.
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

// Returns an array over memory that `owner` keeps alive. Strides are in elements.
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

// The first members of DLPack 1's DLPackExchangeAPI: functions that a library exports in a capsule.
struct exchange_functions {
    struct {
        std::uint32_t major, minor;
        const void* earlier;
    } header;
    void (*allocate)();
    void (*export_managed)();
    void (*import_managed)();
    // Fills `out`, whose memory the object owns. Returns 0, or sets a Python exception.
    int (*read)(void* object, nb::dlpack::dltensor* out);
};

const exchange_functions* find_torch_exchange() {
    const nb::object capsule =
        nb::getattr(MASKWISE_IMPORTED("torch", "Tensor"), "__dlpack_c_exchange_api__", nb::none());
    constexpr const char* name = "dlpack_exchange_api";
    if (PyCapsule_IsValid(capsule.ptr(), name) == 0) return nullptr;
    const auto* const functions =
        static_cast<const exchange_functions*>(PyCapsule_GetPointer(capsule.ptr(), name));
    return functions->header.major == 1 && functions->read != nullptr ? functions : nullptr;
}

// Returns null before torch 2.10.
const exchange_functions* torch_exchange() {
    static std::atomic<const exchange_functions*> functions = nullptr;
    static std::atomic<bool> is_known = false;
    if (!is_known) {
        functions = find_torch_exchange();
        is_known = true;
    }
    return functions;
}

bool is_plain_tensor(nb::handle value) {
    const nb::handle type = value.type();
    return type.is(MASKWISE_IMPORTED("torch", "Tensor")) ||
           type.is(MASKWISE_IMPORTED("torch.nn", "Parameter"));
}

// Returns an unset object for dtypes that attention does not support.
nb::object dtype_of_operand(nb::dlpack::dtype type) {
    const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
    const auto is = [&](nb::dlpack::dtype_code one, int bits) {
        return code == one && type.bits == bits && type.lanes == 1;
    };
    if (is(bfloat, 16)) return nb::borrow(bfloat16_bits());
    const int number = is(nb::dlpack::dtype_code::Float, 32)   ? NPY_FLOAT
                       : is(nb::dlpack::dtype_code::Float, 16) ? NPY_HALF
                       : is(nb::dlpack::dtype_code::Bool, 8)   ? NPY_BOOL
                                                               : NPY_NOTYPE;
    return number == NPY_NOTYPE ? nb::object() : new_reference(PyArray_DescrFromType(number));
}

nb::object view_by_exchange(nb::handle tensor, const exchange_functions& functions) {
    nb::dlpack::dltensor memory;
    if (functions.read(tensor.ptr(), &memory) != 0) {
        PyErr_Clear();
        return {};
    }
    if (memory.strides == nullptr && memory.ndim > 0) return {};
    const std::span extents(memory.shape, static_cast<std::size_t>(memory.ndim));
    const std::span strides(memory.strides, static_cast<std::size_t>(memory.ndim));
    const bool is_empty = std::ranges::find(extents, 0) != extents.end();
    nb::object dtype = dtype_of_operand(memory.dtype);
    const bool is_on_cpu = memory.device.device_type == nb::device::cpu::value;
    if (!is_on_cpu || !dtype.is_valid() || (memory.data == nullptr && !is_empty)) return {};
    // torch exports the memory of a negated tensor without the sign.
    if (nb::cast<bool>(MASKWISE_METHOD(tensor, "is_neg"))) return {};
    return make_array(static_cast<std::byte*>(memory.data) + memory.byte_offset, extents, strides,
                      std::move(dtype), 0, nb::borrow(tensor));
}

nb::object view_by_attributes(nb::handle tensor) {
    const nb::object array =
        MASKWISE_IMPORTED("maskwise._torch_tensors", "view_by_attributes")(tensor);
    return array.is_none() ? nb::object() : array;
}

} // namespace

nb::object view_of_tensor(nb::handle value, bool refuses_gradients) {
    if (!is_plain_tensor(value)) return {};
    if (refuses_gradients && MASKWISE_ATTRIBUTE(bool, value, "requires_grad")) return {};
    const exchange_functions* const functions = torch_exchange();
    return functions == nullptr ? view_by_attributes(value) : view_by_exchange(value, *functions);
}

void* data_of_tensor(nb::handle tensor) {
    const exchange_functions* const functions = torch_exchange();
    nb::dlpack::dltensor memory;
    if (functions != nullptr) {
        if (functions->read(tensor.ptr(), &memory) != 0) throw nb::python_error();
        return static_cast<std::byte*>(memory.data) + memory.byte_offset;
    }
    return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(tensor.attr("data_ptr")()));
}

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
    // Calls __dlpack__ directly, because nanobind would ignore an exception of the library.
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
    // Throws for structured dtypes: their item size, by which strides are divided, may be 0.
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
