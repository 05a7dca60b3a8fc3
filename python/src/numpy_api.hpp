// NumPy's C API, initialised once by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL maskwise_numpy_api
#ifndef MASKWISE_DEFINES_NUMPY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace maskwise::python {

namespace nb = nanobind;

// Borrowed views of Python objects as NumPy's own structures.
inline PyArrayObject* as_array(nb::handle object) {
    return reinterpret_cast<PyArrayObject*>(object.ptr());
}
inline PyArray_Descr* as_dtype(nb::handle object) {
    return reinterpret_cast<PyArray_Descr*>(object.ptr());
}

// A new reference that C gave, or the Python exception that it set instead.
inline nb::object own(void* result) {
    if (result == nullptr) throw nb::python_error();
    return nb::steal<nb::object>(static_cast<PyObject*>(result));
}

inline nb::object dtype_of(nb::handle array) {
    return nb::borrow<nb::object>(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(array))));
}

// Attribute of a module that is part of the package or of NumPy, looked up once. The GIL guards the
// pointer: an import hands it over, and who waits for a guard of C++'s would keep it.
template <typename Tag>
nb::handle imported(Tag, const char* module, const char* name) {
    static PyObject* value = nullptr; // outlives the interpreter
    if (value == nullptr)
        value = nb::object(nb::module_::import_(module).attr(name)).release().ptr();
    return value;
}
#define MASKWISE_IMPORTED(module, name) ::maskwise::python::imported([] {}, module, name)

// NumPy's own. First called when the module is loaded: a program may put maskwise.where in its
// place.
inline nb::handle numpy_where() {
    return MASKWISE_IMPORTED("numpy", "where");
}

} // namespace maskwise::python
