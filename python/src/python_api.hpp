// The C APIs of Python and NumPy. module.cpp initializes NumPy's C API once.
#pragma once

#include <maskwise/maskwise.hpp>
#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL maskwise_numpy_api
#ifndef MASKWISE_DEFINES_NUMPY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <unistd.h>

#include <atomic>

namespace maskwise::python {

namespace nb = nanobind;

// Borrowed views of Python objects as NumPy's structures.
inline PyArrayObject* as_array(nb::handle object) {
    return reinterpret_cast<PyArrayObject*>(object.ptr());
}
inline PyArray_Descr* as_dtype(nb::handle object) {
    return reinterpret_cast<PyArray_Descr*>(object.ptr());
}

// Throws a Python exception with a text formatted by PyErr_Format.
template <class... Values>
[[noreturn]] void refuse(PyObject* type, const char* format, Values... values) {
    PyErr_Format(type, format, values...);
    throw nb::python_error();
}

// Owns the new reference that a C function returned. For null, throws the Python exception that
// the function set.
inline nb::object new_reference(void* result) {
    if (result == nullptr) throw nb::python_error();
    return nb::steal<nb::object>(static_cast<PyObject*>(result));
}

inline nb::object dtype_of(nb::handle array) {
    return nb::borrow<nb::object>(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(array))));
}

inline void* data_of(nb::handle array) {
    return PyArray_DATA(as_array(array));
}

// Imports a module's attribute once and caches it. A guarded static could deadlock: the import
// releases the GIL, and a thread that waits for the guard would hold the GIL. With the atomic,
// several threads may look up the attribute at the same time.
template <typename Tag>
nb::handle imported(Tag, const char* module, const char* name) {
    static std::atomic<PyObject*> value = nullptr; // outlives the interpreter
    if (value == nullptr)
        value = nb::object(nb::module_::import_(module).attr(name)).release().ptr();
    return value.load();
}

// Returns attribute `name` of `object`. Each call site interns `name` once.
template <typename Value, typename Tag>
Value attribute(Tag, nb::handle object, const char* name) {
    static PyObject* const interned = PyUnicode_InternFromString(name);
    return nb::cast<Value>(new_reference(PyObject_GetAttr(object.ptr(), interned)));
}
#define MASKWISE_ATTRIBUTE(type, object, name)                                                     \
    ::maskwise::python::attribute<type>([] {}, object, name)

// Calls method `name` without arguments. Each call site interns `name` once.
template <typename Tag>
nb::object call_method(Tag, nb::handle object, const char* name) {
    static PyObject* const interned = PyUnicode_InternFromString(name);
    PyObject* const arguments[] = {object.ptr()};
    return new_reference(PyObject_VectorcallMethod(interned, arguments, 1, nullptr));
}
#define MASKWISE_METHOD(object, name) ::maskwise::python::call_method([] {}, object, name)

inline nb::str type_name_of(nb::handle object) {
    return nb::str(nb::handle(object.type()).attr("__name__"));
}
#define MASKWISE_IMPORTED(module, name) ::maskwise::python::imported([] {}, module, name)

// NumPy's original where. First called when the module is loaded, because a program may replace
// numpy.where by maskwise.where.
inline nb::handle numpy_where() {
    return MASKWISE_IMPORTED("numpy", "where");
}

// Returns undef for dtypes that Maskwise leaves to NumPy: object, text, structured, longdouble,
// byte-swapped. datetime64 and timedelta64 are i64; callers compare their units. bf16 is ml_dtypes'
// dtype, or bfloat16_bits().
data_type type_of(PyArray_Descr* dtype);

// Stand-in dtype for bfloat16 arrays from DLPack: NumPy has no bfloat16, and ml_dtypes may not be
// installed. NumPy cannot convert the elements.
nb::handle bfloat16_bits();

// The dtype as error texts show it.
nb::object name_of(PyArray_Descr* dtype);

// Releases the GIL while elements are moved. If the interpreter ends meanwhile, Python up to 3.13
// does not return the GIL but unwinds the thread. Destructors must not run without the GIL, so the
// thread waits for the process to end, as in Python 3.14.
struct released_gil {
    explicit released_gil(bool wanted) : state(wanted ? PyEval_SaveThread() : nullptr) {}
    ~released_gil() {
        if (state == nullptr) return;
        try {
            PyEval_RestoreThread(state);
        } catch (...) {
            for (;;) pause();
        }
    }
    released_gil(const released_gil&) = delete;
    released_gil& operator=(const released_gil&) = delete;

    PyThreadState* state;
};

} // namespace maskwise::python
