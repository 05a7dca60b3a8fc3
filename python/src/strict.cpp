#include "entries.hpp"

#include "output.hpp"

namespace maskwise::python {
namespace {

bool is_text(nb::handle array) {
    const int type = PyArray_TYPE(as_array(array));
    return type == NPY_OBJECT || type == NPY_UNICODE || type == NPY_VSTRING;
}

// An array of objects counts as strings only if every element is a string.
void require_strings(nb::handle array, const char* name) {
    if (PyArray_TYPE(as_array(array)) != NPY_OBJECT) return;
    for (const nb::handle element : array.attr("flat"))
        if (!PyUnicode_Check(element.ptr()))
            refuse(PyExc_TypeError, "%s holds %R, expected str in an array of objects", name,
                   element.ptr());
}

data_type strict_type(nb::handle array, const char* name) {
    const data_type type =
        is_text(array) ? data_type::string : type_of(PyArray_DESCR(as_array(array)));
    const int number = PyArray_TYPE(as_array(array));
    if (type != data_type::undef && !PyTypeNum_ISDATETIME(number)) return type;
    refuse(PyExc_TypeError, "%s has dtype %S, which no dialect supports", name,
           name_of(PyArray_DESCR(as_array(array))).ptr());
}

tensor_desc describe_strictly(nb::handle array, const char* name) {
    require_strings(array, name);
    return describe(array, strict_type(array, name));
}

} // namespace

nb::object select(nb::handle cond, nb::handle src_0, nb::handle src_1, bool broadcasts,
                  int dialect_number) {
    const auto form = static_cast<dialect>(dialect_number);
    const auto rule = broadcasts ? auto_broadcast::numpy : auto_broadcast::none;
    const select_desc desc{.cond = describe_strictly(cond, "cond"),
                           .src_0 = describe_strictly(src_0, "src_0"),
                           .src_1 = describe_strictly(src_1, "src_1")};
    try {
        const tensor_desc result = infer_dst(form, desc, rule);
        // NumPy's text is not std::string, so numpy.where moves the text.
        if (result.type == data_type::string) {
            const nb::object dst = numpy_where()(cond, src_0, src_1);
            return new_reference(PyArray_FromArray(as_array(dst), nullptr, NPY_ARRAY_C_CONTIGUOUS));
        }
        nb::object dst = allocate_row_major(result.extents, dtype_of(src_0));
        const plan compiled = compile(form, desc, rule);
        const released_gil gil(true);
        compiled.execute({.cond = data_of(cond), .src_0 = data_of(src_0), .src_1 = data_of(src_1)},
                         data_of(dst));
        return dst;
    } catch (const shape_error&) {
        throw;
    } catch (const argument_error& failure) {
        throw nb::type_error(failure.what());
    }
}

} // namespace maskwise::python
