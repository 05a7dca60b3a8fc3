#include "request.hpp"

#include <cstdint>
#include <cstring>

namespace maskwise::python {
namespace {

bool is_plain(nb::handle value) {
    return PyArray_CheckExact(value.ptr()) || PyFloat_CheckExact(value.ptr()) ||
           PyLong_CheckExact(value.ptr()) || PyBool_Check(value.ptr()) ||
           PyComplex_CheckExact(value.ptr()) || PyArray_IsScalar(value.ptr(), Generic);
}

nb::object to_array(nb::handle value) {
    if (PyArray_CheckExact(value.ptr())) return nb::borrow<nb::object>(value);
    return new_reference(PyArray_FROM_O(value.ptr()));
}

// Whether a Python number takes the dtype of the other array. Covers the frequent cases of
// NumPy's rule; numpy.result_type decides the other cases.
bool follows(nb::handle number, PyArray_Descr* array_dtype) {
    const int other = array_dtype->type_num;
    if (PyLong_CheckExact(number.ptr()))
        return PyTypeNum_ISINTEGER(other) || PyTypeNum_ISFLOAT(other) || PyTypeNum_ISCOMPLEX(other);
    return PyFloat_CheckExact(number.ptr()) &&
           (PyTypeNum_ISFLOAT(other) || PyTypeNum_ISCOMPLEX(other));
}

bool is_same(PyArray_Descr* a, PyArray_Descr* b) {
    if (a == b) return true;
    if (a->type_num != b->type_num) return false;
    return PyArray_EquivTypes(a, b) != 0;
}

// numpy.result_type gives int64 for two Python integers of any size. Arrays of large integers would
// give uint64 or object.
bool are_large_integers(nb::handle x, nb::handle y, const request& call) {
    const auto is_int64 = [](nb::handle array) {
        return PyArray_TYPE(as_array(array)) == NPY_LONG;
    };
    return PyLong_CheckExact(x.ptr()) && PyLong_CheckExact(y.ptr()) &&
           !(is_int64(call.x) && is_int64(call.y));
}

nb::object common_dtype(nb::handle x, nb::handle y, const request& call) {
    PyArray_Descr* const x_dtype = PyArray_DESCR(as_array(call.x));
    PyArray_Descr* const y_dtype = PyArray_DESCR(as_array(call.y));
    if (are_large_integers(x, y, call))
        return nb::borrow<nb::object>(MASKWISE_IMPORTED("numpy", "result_type")(x, y));
    // Returns what result_type would return, but faster.
    if (is_same(x_dtype, y_dtype) || follows(y, x_dtype))
        return dtype_of(call.x); // mutate.py: skip
    if (follows(x, y_dtype)) return dtype_of(call.y);
    return nb::borrow<nb::object>(MASKWISE_IMPORTED("numpy", "result_type")(x, y));
}

template <typename Bits, Bits infinity, Bits quiet>
bool has_signalling(const char* next, npy_intp count) {
    constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
    const char* const end = next + count * static_cast<npy_intp>(sizeof(Bits));
    for (; next != end; next += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, next, sizeof bits);
        if ((bits & ~sign) > infinity && (bits & quiet) == 0) return true;
    }
    return false;
}

// Requires a contiguous array.
bool has_signalling_nan(PyArrayObject* array) {
    constexpr auto in_singles = has_signalling<std::uint32_t, 0x7F800000, 0x400000>;
    constexpr auto in_doubles = has_signalling<std::uint64_t, 0x7FF0000000000000, 0x8000000000000>;
    const int type = PyArray_TYPE(array);
    if (type == NPY_FLOAT || type == NPY_CFLOAT)
        return in_singles(PyArray_BYTES(array), PyArray_NBYTES(array) / 4);
    if (type == NPY_DOUBLE || type == NPY_CDOUBLE)
        return in_doubles(PyArray_BYTES(array), PyArray_NBYTES(array) / 8);
    return false;
}

// Casts an operand that is no larger than one buffer of the iterator. A broadcast row is then cast
// once, and the other operands are read in place. Skips arrays that are not C-contiguous, because a
// cast would lose the order that numpy.where's result follows. Skips arrays with a signalling NaN,
// because NumPy's cast would warn. numpy.where, which casts into buffers, does not warn.
void cast_if_small(nb::object& operand, nb::handle dtype) {
    PyArrayObject* const array = as_array(operand);
    if (is_same(PyArray_DESCR(array), as_dtype(dtype))) return;
    if (PyArray_SIZE(array) > cast_elements || !PyArray_IS_C_CONTIGUOUS(array)) return;
    if (PyArray_NDIM(array) > 0 && has_signalling_nan(array)) return;
    operand = new_reference(PyArray_CastToType(array, as_dtype(dtype.inc_ref()), 0));
}

// Whether the condition's elements are bytes that are true unless they are 0.
bool is_truth_byte(nb::handle condition) {
    const int type = PyArray_TYPE(as_array(condition));
    return type == NPY_BOOL || type == NPY_BYTE || type == NPY_UBYTE;
}

bool has_dtype(nb::handle array, nb::handle dtype) {
    return is_same(PyArray_DESCR(as_array(array)), as_dtype(dtype));
}

// NumPy raises an exception for a cast of a date without a unit to a date with a unit. For many
// elements, NumPy's cast raises without the GIL. numpy.where holds the GIL, so it runs these calls.
bool lacks_unit(PyArray_Descr* dtype) {
    if (dtype->type_num != NPY_DATETIME) return false;
    const auto* const unit =
        reinterpret_cast<PyArray_DatetimeDTypeMetaData*>(PyDataType_C_METADATA(dtype));
    return unit->meta.base == NPY_FR_GENERIC;
}

bool gains_unit(nb::handle array, nb::handle dtype) {
    return lacks_unit(PyArray_DESCR(as_array(array))) && !has_dtype(array, dtype);
}

void choose_way(request& call) {
    if (type_of(PyArray_DESCR(as_array(call.condition))) == data_type::undef)
        call.why = "Maskwise does not support the condition's dtype";
    else if (type_of(PyArray_DESCR(as_array(call.x))) == data_type::undef)
        call.why = "Maskwise does not support the dtype of x";
    else if (type_of(PyArray_DESCR(as_array(call.y))) == data_type::undef)
        call.why = "Maskwise does not support the dtype of y";
    else
        call.how = way::cast;
}

} // namespace

bool are_plain(nb::handle condition, nb::handle x, nb::handle y) {
    return is_plain(condition) && is_plain(x) && is_plain(y);
}

request make_request(nb::handle condition, nb::handle x, nb::handle y) {
    request call;
    call.condition = call.originals[0] = to_array(condition);
    call.x = call.originals[1] = to_array(x);
    call.y = call.originals[2] = to_array(y);
    choose_way(call);
    if (call.how == way::numpy) return call;
    call.dtype = common_dtype(x, y, call);
    // A result does not inherit dtype metadata.
    if (PyDataType_METADATA(as_dtype(call.dtype)) != nullptr)
        call.dtype = nb::borrow<nb::object>(
            MASKWISE_IMPORTED("numpy", "result_type")(call.dtype, call.dtype));
    call.type = type_of(as_dtype(call.dtype));
    if (call.type == data_type::undef) {
        call.how = way::numpy;
        call.why = "Maskwise does not support the common dtype of x and y";
        return call;
    }
    if (gains_unit(call.x, call.dtype) || gains_unit(call.y, call.dtype)) {
        call.how = way::numpy;
        call.why = "NumPy converts dates without a unit";
        return call;
    }
    cast_if_small(call.x, call.dtype);
    cast_if_small(call.y, call.dtype);
    if (!is_truth_byte(call.condition))
        cast_if_small(call.condition, new_reference(PyArray_DescrFromType(NPY_BOOL)));
    if (!is_truth_byte(call.condition)) {
        call.why = "the condition is converted to booleans piece by piece";
    } else if (!has_dtype(call.x, call.dtype) || !has_dtype(call.y, call.dtype)) {
        call.why = "x and y differ in dtype and are cast piece by piece";
    } else {
        call.how = way::plan;
        call.why = "operands of the result's dtype are read in place; "
                   "small operands of other dtypes are cast";
    }
    return call;
}

tensor_desc describe(nb::handle array, data_type type) {
    PyArrayObject* const numpy_array = as_array(array);
    const auto rank = static_cast<std::size_t>(PyArray_NDIM(numpy_array));
    const auto numbers = [&](const npy_intp* values) { return dims(std::span(values, rank)); };
    return {type, numbers(PyArray_DIMS(numpy_array)), numbers(PyArray_STRIDES(numpy_array))};
}

} // namespace maskwise::python
