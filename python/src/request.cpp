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
    return own(PyArray_FROM_O(value.ptr()));
}

// Python's own numbers take the type of the array next to them where that can hold their kind. The
// frequent cases of NumPy's rule; numpy.result_type knows the others.
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

// Two of Python's integers are int64 to NumPy however large they are; as an array one is uint64.
bool are_large_integers(nb::handle x, nb::handle y, const request& of) {
    const auto is_int64 = [](nb::handle array) {
        return PyArray_TYPE(as_array(array)) == NPY_LONG;
    };
    return PyLong_CheckExact(x.ptr()) && PyLong_CheckExact(y.ptr()) &&
           !(is_int64(of.x) && is_int64(of.y));
}

nb::object common_dtype(nb::handle x, nb::handle y, const request& of) {
    PyArray_Descr* const x_dtype = PyArray_DESCR(as_array(of.x));
    PyArray_Descr* const y_dtype = PyArray_DESCR(as_array(of.y));
    if (are_large_integers(x, y, of))
        return nb::borrow<nb::object>(MASKWISE_IMPORTED("numpy", "result_type")(x, y));
    // NumPy says the same, but takes longer.
    if (is_same(x_dtype, y_dtype) || follows(y, x_dtype)) return dtype_of(of.x); // speed
    if (follows(x, y_dtype)) return dtype_of(of.y);
    return nb::borrow<nb::object>(MASKWISE_IMPORTED("numpy", "result_type")(x, y));
}

template <typename Bits, Bits infinity, Bits quiet>
bool has_signalling(const char* from, npy_intp count) {
    constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
    const char* const end = from + count * static_cast<npy_intp>(sizeof(Bits));
    for (; from != end; from += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, from, sizeof bits);
        if ((bits & ~sign) > infinity && (bits & quiet) == 0) return true;
    }
    return false;
}

// Of a contiguous array.
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

// What is no larger than a piece of the iterator's is cast at once: a row that is repeated is cast
// once, and the others may stay where they lie. Another order than the dense one would be lost, and
// numpy.where's result follows it. NumPy warns of signalling NaNs where it casts an array as a
// whole, and not where its own where casts piece by piece.
void cast_if_small(nb::object& operand, nb::handle dtype) {
    PyArrayObject* const array = as_array(operand);
    if (is_same(PyArray_DESCR(array), as_dtype(dtype))) return;
    if (PyArray_SIZE(array) > cast_elements || !PyArray_IS_C_CONTIGUOUS(array)) return;
    if (PyArray_NDIM(array) > 0 && has_signalling_nan(array)) return;
    operand = own(PyArray_CastToType(array, as_dtype(dtype.inc_ref()), 0));
}

// A byte is true unless it is 0, whatever its type says.
bool is_truth_byte(nb::handle condition) {
    const int type = PyArray_TYPE(as_array(condition));
    return type == NPY_BOOL || type == NPY_BYTE || type == NPY_UBYTE;
}

bool lies_as(nb::handle array, nb::handle dtype) {
    return is_same(PyArray_DESCR(as_array(array)), as_dtype(dtype));
}

// NumPy refuses to make a date without a unit one that has it, by an exception that its casts set
// without holding the GIL where elements are many; its own where holds the GIL for the first ones.
bool lacks_unit(PyArray_Descr* dtype) {
    if (dtype->type_num != NPY_DATETIME) return false;
    const auto* const unit =
        reinterpret_cast<PyArray_DatetimeDTypeMetaData*>(PyDataType_C_METADATA(dtype));
    return unit->meta.base == NPY_FR_GENERIC;
}

bool gains_unit(nb::handle array, nb::handle dtype) {
    return lacks_unit(PyArray_DESCR(as_array(array))) && !lies_as(array, dtype);
}

void choose_way(request& of) {
    if (type_of(PyArray_DESCR(as_array(of.condition))) == data_type::undef)
        of.why = "the condition's dtype is none of Maskwise's";
    else if (type_of(PyArray_DESCR(as_array(of.x))) == data_type::undef)
        of.why = "the dtype of x is none of Maskwise's";
    else if (type_of(PyArray_DESCR(as_array(of.y))) == data_type::undef)
        of.why = "the dtype of y is none of Maskwise's";
    else
        of.how = way::cast;
}

} // namespace

bool are_plain(nb::handle condition, nb::handle x, nb::handle y) {
    return is_plain(condition) && is_plain(x) && is_plain(y);
}

request make_request(nb::handle condition, nb::handle x, nb::handle y) {
    request made;
    made.condition = made.given[0] = to_array(condition);
    made.x = made.given[1] = to_array(x);
    made.y = made.given[2] = to_array(y);
    choose_way(made);
    if (made.how == way::numpy) return made;
    made.dtype = common_dtype(x, y, made);
    // A result has none of its operands' notes.
    if (PyDataType_METADATA(as_dtype(made.dtype)) != nullptr)
        made.dtype = nb::borrow<nb::object>(
            MASKWISE_IMPORTED("numpy", "result_type")(made.dtype, made.dtype));
    made.type = type_of(as_dtype(made.dtype));
    if (made.type == data_type::undef) {
        made.how = way::numpy;
        made.why = "the common dtype of x and y is none of Maskwise's";
        return made;
    }
    if (gains_unit(made.x, made.dtype) || gains_unit(made.y, made.dtype)) {
        made.how = way::numpy;
        made.why = "dates without a unit are NumPy's to convert";
        return made;
    }
    cast_if_small(made.x, made.dtype);
    cast_if_small(made.y, made.dtype);
    if (!is_truth_byte(made.condition))
        cast_if_small(made.condition, own(PyArray_DescrFromType(NPY_BOOL)));
    if (!is_truth_byte(made.condition)) {
        made.why = "the condition's truth is taken piece by piece";
    } else if (!lies_as(made.x, made.dtype) || !lies_as(made.y, made.dtype)) {
        made.why = "x and y differ in dtype and are cast piece by piece";
    } else {
        made.how = way::plan;
        made.why =
            "what has the result's dtype is read as it lies, small operands of another are cast";
    }
    return made;
}

tensor_desc describe(nb::handle array, data_type type) {
    PyArrayObject* const of = as_array(array);
    const auto rank = static_cast<std::size_t>(PyArray_NDIM(of));
    const auto numbers = [&](const npy_intp* values) { return dims(std::span(values, rank)); };
    return {type, numbers(PyArray_DIMS(of)), numbers(PyArray_STRIDES(of))};
}

} // namespace maskwise::python
