#include "python_api.hpp"

#include <array>
#include <atomic>

namespace maskwise::python {
namespace {

// NumPy's type number of ml_dtypes' bfloat16. -1 before ml_dtypes is imported and registers the
// type; no array has the type then.
int bfloat16_number() {
    static std::atomic<int> number = -1;
    if (number >= 0) return number;
    const nb::object module = nb::steal(PyImport_GetModule(nb::str("ml_dtypes").ptr()));
    if (!module.is_valid()) {
        PyErr_Clear();
        return number;
    }
    // `module` is None if a program forbids the import. During the import, bfloat16 is missing.
    const nb::object type = nb::getattr(module, "bfloat16", nb::none());
    if (type.is_none()) return number;
    const nb::object dtype = MASKWISE_IMPORTED("numpy", "dtype")(type);
    return number = as_dtype(dtype)->type_num;
}

bool is_bfloat16_bits(PyArray_Descr* dtype) {
    return dtype->type_num == NPY_VOID && PyDataType_ELSIZE(dtype) == 2 &&
           PyArray_EquivTypes(dtype, as_dtype(bfloat16_bits())) != 0;
}

} // namespace

nb::handle bfloat16_bits() {
    return MASKWISE_IMPORTED("maskwise._bfloat16", "BITS");
}

nb::object name_of(PyArray_Descr* dtype) {
    if (type_of(dtype) == data_type::bf16) return nb::str("bfloat16");
    return nb::borrow<nb::object>(reinterpret_cast<PyObject*>(dtype));
}

data_type type_of(PyArray_Descr* dtype) {
    // Indexed by NumPy's type numbers.
    static constexpr auto types = [] {
        std::array<data_type, NPY_NTYPES_LEGACY> table{};
        table[NPY_BOOL] = data_type::boolean;
        table[NPY_BYTE] = data_type::i8;
        table[NPY_UBYTE] = data_type::u8;
        table[NPY_SHORT] = data_type::i16;
        table[NPY_USHORT] = data_type::u16;
        table[NPY_INT] = data_type::i32;
        table[NPY_UINT] = data_type::u32;
        table[NPY_LONG] = table[NPY_LONGLONG] = table[NPY_DATETIME] = table[NPY_TIMEDELTA] =
            data_type::i64;
        table[NPY_ULONG] = table[NPY_ULONGLONG] = data_type::u64;
        table[NPY_HALF] = data_type::f16;
        table[NPY_FLOAT] = data_type::f32;
        table[NPY_DOUBLE] = data_type::f64;
        table[NPY_CFLOAT] = data_type::complex64;
        table[NPY_CDOUBLE] = data_type::complex128;
        return table;
    }();
    const int number = dtype->type_num;
    if (!PyArray_ISNBO(dtype->byteorder)) return data_type::undef;
    if (is_bfloat16_bits(dtype)) return data_type::bf16;
    if (number >= 0 && number < NPY_NTYPES_LEGACY) return types[static_cast<std::size_t>(number)];
    const bool is_registered = PyTypeNum_ISUSERDEF(number);
    return is_registered && number == bfloat16_number() ? data_type::bf16 : data_type::undef;
}

} // namespace maskwise::python
