#include "strict.hpp"

#include "dtypes.hpp"
#include "released_gil.hpp"

#include <string>

namespace maskwise::python {
namespace {

struct named_dialect {
    const char* name;
    dialect form;
};

constexpr named_dialect dialects[] = {
    {"onednn", dialect::onednn_select},
    {"openvino", dialect::openvino_select_1},
    {"onnx-9", dialect::onnx_where_9},
    {"onnx", dialect::onnx_where_16},
};

std::string_view text_of(nb::handle value, const char* name) {
    if (!PyUnicode_Check(value.ptr())) {
        PyErr_Format(PyExc_TypeError, "%s is %R, expected a string", name, value.ptr());
        throw nb::python_error();
    }
    Py_ssize_t bytes = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &bytes);
    if (text == nullptr) throw nb::python_error();
    return {text, static_cast<std::size_t>(bytes)};
}

dialect find_dialect(nb::handle value) {
    const std::string_view name = text_of(value, "dialect");
    std::string known;
    for (const named_dialect& one : dialects) {
        if (name == one.name) return one.form;
        known += known.empty() ? one.name : std::string(", ") + one.name;
    }
    throw nb::value_error(
        ("dialect is '" + std::string(name) + "', expected one of " + known).c_str());
}

auto_broadcast find_broadcast(nb::handle value, dialect form) {
    const std::string_view name = text_of(value, "auto_broadcast");
    const bool is_onnx = form == dialect::onnx_where_9 || form == dialect::onnx_where_16;
    if (name == "numpy") return auto_broadcast::numpy;
    if (name == "none" && is_onnx)
        throw nb::value_error("auto_broadcast is 'none', expected numpy: ONNX has no other");
    if (name == "none") return auto_broadcast::none;
    throw nb::value_error(
        ("auto_broadcast is '" + std::string(name) + "', expected numpy or none").c_str());
}

bool is_text(nb::handle array) {
    const int type = PyArray_TYPE(as_array(array));
    return type == NPY_OBJECT || type == NPY_UNICODE || type == NPY_VSTRING;
}

// An array of objects stands for one of strings only where it holds nothing else.
void require_strings(nb::handle array, const char* name) {
    if (PyArray_TYPE(as_array(array)) != NPY_OBJECT) return;
    for (const nb::handle element : array.attr("flat"))
        if (!PyUnicode_Check(element.ptr())) {
            PyErr_Format(PyExc_TypeError, "%s holds %R, expected str in an array of objects", name,
                         element.ptr());
            throw nb::python_error();
        }
}

data_type strict_type(nb::handle array, const char* name) {
    const data_type type =
        is_text(array) ? data_type::string : type_of(PyArray_DESCR(as_array(array)));
    const int number = PyArray_TYPE(as_array(array));
    if (type != data_type::undef && !PyTypeNum_ISDATETIME(number)) return type;
    PyErr_Format(PyExc_TypeError, "%s has dtype %S, which no dialect knows", name,
                 dtype_of(array).ptr());
    throw nb::python_error();
}

tensor_desc describe_strictly(nb::handle array, const char* name) {
    require_strings(array, name);
    return describe(array, strict_type(array, name));
}

nb::object new_array(const dims& extents, nb::handle dtype) {
    return own(PyArray_Empty(extents.rank(), extents.begin(), as_dtype(dtype.inc_ref()), 0));
}

} // namespace

nb::object select(nb::handle cond, nb::handle src_0, nb::handle src_1, nb::handle broadcast,
                  nb::handle dialect_name) {
    const dialect form = find_dialect(dialect_name);
    const auto_broadcast rule = find_broadcast(broadcast, form);
    const select_desc desc{.cond = describe_strictly(cond, "cond"),
                           .src_0 = describe_strictly(src_0, "src_0"),
                           .src_1 = describe_strictly(src_1, "src_1")};
    try {
        const tensor_desc result = infer_dst(form, desc, rule);
        // Text in NumPy is no std::string; its references are NumPy's to move.
        if (result.type == data_type::string) {
            const nb::object dst = numpy_where()(cond, src_0, src_1);
            return own(PyArray_FromArray(as_array(dst), nullptr, NPY_ARRAY_C_CONTIGUOUS));
        }
        nb::object dst = new_array(result.extents, dtype_of(src_0));
        const plan made = compile(form, desc, rule);
        const released_gil gil(true);
        made.execute({.cond = PyArray_DATA(as_array(cond)),
                      .src_0 = PyArray_DATA(as_array(src_0)),
                      .src_1 = PyArray_DATA(as_array(src_1))},
                     PyArray_DATA(as_array(dst)));
        return dst;
    } catch (const invalid_shape&) {
        throw;
    } catch (const invalid_argument& failure) {
        throw nb::type_error(failure.what());
    }
}

} // namespace maskwise::python
