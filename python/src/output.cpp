#include "output.hpp"

namespace maskwise::python {
namespace {

bool is_row_major(nb::handle array) {
    return PyArray_IS_C_CONTIGUOUS(as_array(array));
}

bool broadcast(dims& shape, const request& call) {
    shape = {};
    return widen(shape, call.condition) && widen(shape, call.x) && widen(shape, call.y);
}

// NumPy's iterator chooses one order of dimensions for all operands. Throws NumPy's error if the
// shapes do not broadcast.
nb::object allocate_in_their_order(const request& call) {
    PyArrayObject* operands[] = {nullptr, as_array(call.condition), as_array(call.x),
                                 as_array(call.y)};
    npy_uint32 flags[] = {NPY_ITER_WRITEONLY | NPY_ITER_ALLOCATE | NPY_ITER_NO_SUBTYPE,
                          NPY_ITER_READONLY, NPY_ITER_READONLY, NPY_ITER_READONLY};
    PyArray_Descr* dtypes[] = {as_dtype(call.dtype), nullptr, nullptr, nullptr};
    NpyIter* const iterator = NpyIter_MultiNew(4, operands, NPY_ITER_ZEROSIZE_OK, NPY_KEEPORDER,
                                               NPY_UNSAFE_CASTING, flags, dtypes);
    if (iterator == nullptr) throw nb::python_error();
    nb::object output =
        nb::borrow<nb::object>(reinterpret_cast<PyObject*>(NpyIter_GetOperandArray(iterator)[0]));
    if (NpyIter_Deallocate(iterator) != NPY_SUCCEED) throw nb::python_error();
    return output;
}

struct byte_range {
    npy_intp first, last; // half-open range of addresses

    bool meets(const byte_range& other) const { return first < other.last && other.first < last; }
};

[[noreturn]] void refuse_reach(PyArrayObject* array) {
    const nb::handle object(reinterpret_cast<PyObject*>(array));
    refuse(PyExc_ValueError, "an array of shape %S and strides %S reaches beyond 64 bits",
           nb::object(object.attr("shape")).ptr(), nb::object(object.attr("strides")).ptr());
}

// Returns the elements' addresses. Checks for overflow, because a program can choose any strides.
byte_range range_of(PyArrayObject* array) {
    const auto data = reinterpret_cast<npy_intp>(PyArray_BYTES(array));
    const npy_intp* const extents = PyArray_DIMS(array);
    const int rank = PyArray_NDIM(array);
    if (std::find(extents, extents + rank, 0) != extents + rank) return {data, data};
    byte_range range{data, data + PyArray_ITEMSIZE(array)};
    for (int i = 0; i < rank; ++i) {
        npy_intp reach = 0;
        if (__builtin_mul_overflow(extents[i] - 1, PyArray_STRIDE(array, i), &reach))
            refuse_reach(array);
        npy_intp& end = reach < 0 ? range.first : range.last;
        if (__builtin_add_overflow(end, reach, &end)) refuse_reach(array);
    }
    return range;
}

bool is_same_memory(PyArrayObject* a, PyArrayObject* b) {
    if (PyArray_BYTES(a) != PyArray_BYTES(b) || PyArray_NDIM(a) != PyArray_NDIM(b)) return false;
    for (int i = 0; i < PyArray_NDIM(a); ++i) {
        if (PyArray_DIM(a, i) != PyArray_DIM(b, i)) return false;
        if (PyArray_DIM(a, i) > 1 && PyArray_STRIDE(a, i) != PyArray_STRIDE(b, i)) return false;
    }
    return PyArray_ITEMSIZE(a) == PyArray_ITEMSIZE(b);
}

// bfloat16 has two dtypes: ml_dtypes' and bfloat16_bits().
bool is_same_type(PyArray_Descr* a, PyArray_Descr* b) {
    if (PyArray_EquivTypes(a, b) != 0) return true;
    return type_of(a) == data_type::bf16 && type_of(b) == data_type::bf16;
}

void check_shape(nb::handle out, const dims& extents) {
    const npy_intp* const actual = PyArray_DIMS(as_array(out));
    if (std::equal(actual, actual + PyArray_NDIM(as_array(out)), extents.begin(), extents.end()))
        return;
    nb::list shape;
    for (const std::int64_t extent : extents) shape.append(extent);
    refuse(PyExc_ValueError, "out has shape %S, the result is %S",
           nb::object(out.attr("shape")).ptr(), nb::tuple(shape).ptr());
}

} // namespace

bool widen(dims& shape, nb::handle operand) {
    const int rank = PyArray_NDIM(as_array(operand));
    dims wide = dims::filled(std::max(rank, shape.rank()), 1);
    std::copy(shape.begin(), shape.end(), wide.end() - shape.rank());
    std::int64_t* tail = wide.end() - rank;
    for (int i = 0; i < rank; ++i) {
        const npy_intp extent = PyArray_DIM(as_array(operand), i);
        if (tail[i] != extent && tail[i] != 1 && extent != 1) return false;
        if (tail[i] == 1) tail[i] = extent;
    }
    shape = wide;
    return true;
}

nb::object allocate_row_major(const dims& extents, nb::handle dtype) {
    return new_reference(
        PyArray_Empty(extents.rank(), extents.begin(), as_dtype(dtype.inc_ref()), 0));
}

nb::object allocate_output(const request& call) {
    if (is_row_major(call.condition) && is_row_major(call.x) && is_row_major(call.y))
        if (dims extents; broadcast(extents, call)) return allocate_row_major(extents, call.dtype);
    return allocate_in_their_order(call);
}

void check_array(nb::handle out, const dims& extents, nb::handle dtype) {
    if (!PyArray_Check(out.ptr()))
        refuse(PyExc_TypeError, "out must be a numpy.ndarray, not %s", type_name_of(out).c_str());
    check_shape(out, extents);
    PyArray_Descr* const actual = PyArray_DESCR(as_array(out));
    if (!is_same_type(actual, as_dtype(dtype)))
        refuse(PyExc_TypeError, "out has dtype %S, the result is %S", name_of(actual).ptr(),
               name_of(as_dtype(dtype)).ptr());
    if (PyArray_FailUnlessWriteable(as_array(out), "output array") != 0) throw nb::python_error();
}

void check_output(const request& call, nb::handle out) {
    dims extents;
    if (!broadcast(extents, call)) allocate_in_their_order(call); // throws NumPy's error
    check_array(out, extents, call.dtype);
    check_overlaps(out, call.originals[0], call.originals[1], call.originals[2]);
}

void check_overlap(nb::handle out, nb::handle operand, const char* name, bool may_be_same) {
    if (!PyArray_Check(operand.ptr())) return; // for example a list
    if (!range_of(as_array(out)).meets(range_of(as_array(operand)))) return;
    if (may_be_same && is_same_memory(as_array(out), as_array(operand))) return;
    MASKWISE_IMPORTED("maskwise._others", "refuse_overlap")(out, operand, name);
}

void check_overlaps(nb::handle out, nb::handle condition, nb::handle x, nb::handle y) {
    check_overlap(out, condition, "condition", false);
    check_overlap(out, x, "x", true);
    check_overlap(out, y, "y", true);
}

} // namespace maskwise::python
