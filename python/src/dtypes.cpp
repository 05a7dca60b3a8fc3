#include "dtypes.hpp"

namespace maskwise::python {
namespace {

// ml_dtypes registers bfloat16 with NumPy under a number of its own; no such array exists before.
int bfloat16_number() {
    static int number = -1;
    if (number >= 0) return number;
    const nb::object module = nb::steal(PyImport_GetModule(nb::str("ml_dtypes").ptr()));
    if (!module.is_valid()) {
        PyErr_Clear();
        return number;
    }
    // None where the import was forbidden; not yet there while another thread is importing.
    const nb::object type = nb::getattr(module, "bfloat16", nb::none());
    if (type.is_none()) return number;
    const nb::object dtype = MASKWISE_IMPORTED("numpy", "dtype")(type);
    return number = as_dtype(dtype)->type_num;
}

} // namespace

data_type type_of(PyArray_Descr* dtype) {
    if (!PyArray_ISNBO(dtype->byteorder)) return data_type::undef;
    switch (dtype->type_num) {
    case NPY_BOOL:
        return data_type::boolean;
    case NPY_BYTE:
        return data_type::i8;
    case NPY_UBYTE:
        return data_type::u8;
    case NPY_SHORT:
        return data_type::i16;
    case NPY_USHORT:
        return data_type::u16;
    case NPY_INT:
        return data_type::i32;
    case NPY_UINT:
        return data_type::u32;
    case NPY_LONG:
    case NPY_LONGLONG:
    case NPY_DATETIME:
    case NPY_TIMEDELTA:
        return data_type::i64;
    case NPY_ULONG:
    case NPY_ULONGLONG:
        return data_type::u64;
    case NPY_HALF:
        return data_type::f16;
    case NPY_FLOAT:
        return data_type::f32;
    case NPY_DOUBLE:
        return data_type::f64;
    case NPY_CFLOAT:
        return data_type::complex64;
    case NPY_CDOUBLE:
        return data_type::complex128;
    default:
        break;
    }
    const bool is_registered = PyTypeNum_ISUSERDEF(dtype->type_num);
    return is_registered && dtype->type_num == bfloat16_number() ? data_type::bf16
                                                                 : data_type::undef;
}

} // namespace maskwise::python
