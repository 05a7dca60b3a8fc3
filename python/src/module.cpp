// The extension module maskwise._core.
#define MASKWISE_DEFINES_NUMPY_API
#include "entries.hpp"
#include "output.hpp"
#include "torch_select.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace maskwise::python {
namespace {

using namespace nb::literals;

constexpr const char* where_doc = R"(where(condition, x=None, y=None, /, *, out=None)
--

Returns x where condition is true, else y: numpy.where at memory bandwidth.

Parameters
----------
condition : array_like
    Any dtype; nonzero is true. bool, int8 and uint8 are read in place.
x, y : array_like
    numpy.where's rules promote their dtypes. condition, x and y broadcast to each other and may
    have any strides.
out : numpy.ndarray, optional
    Receives the result. Must be writable, with the broadcast shape and the promoted dtype. May be
    exactly x or y, but must not share other memory with operands.

Returns
-------
out, or a new array with numpy.where's layout. If arguments are arrays of other libraries with
DLPack (jax, torch), the result is an array of the first such library. If any argument is a Dask
array, the result is a Dask array.

Elements of the result's dtype are moved as bits: NaN payloads and -0.0 stay. Maskwise runs all
boolean, integer, floating and complex dtypes, ml_dtypes.bfloat16, datetime64 and timedelta64.
numpy.where runs object, text, structured, longdouble and byte-swapped arrays, dates without a unit
next to dates with a unit, and calls with one argument. explain() tells whether Maskwise or NumPy
runs a call. The GIL is released while elements are moved; do not write to the operands meanwhile.

Raises
------
ValueError
    Shapes do not broadcast, or out has another shape, is read-only or partly shares memory with an
    operand.
TypeError
    There is no common dtype, or out has another dtype or is not an array.
)";

constexpr const char* explain_doc =
    R"(explain(condition, x, y, /)
--

Describes how where would run, as lines of text: by Maskwise or by numpy.where, the reason, and the
plan. Moves no elements. Raises as where does. For attention, call explain_attention.
)";

constexpr const char* instruction_set_doc =
    R"(instruction_set()
--

The instruction set of the kernels that run: amx, avx512, avx2, sse4, scalar or neon.
MASKWISE_MAX_ISA caps it; neon_bf16 runs only if MASKWISE_MAX_ISA names it. Raises ValueError if
this machine does not support the set in MASKWISE_MAX_ISA.
)";

constexpr std::pair<const char*, dialect> named_dialects[] = {
    {"onednn_select", dialect::onednn_select},
    {"openvino_select_1", dialect::openvino_select_1},
    {"onnx_where_9", dialect::onnx_where_9},
    {"onnx_where_16", dialect::onnx_where_16},
};

nb::object others(const char* name) {
    return nb::module_::import_("maskwise._others").attr(name);
}

nb::object where(nb::handle condition, nb::handle x, nb::handle y, nb::handle out) {
    if (!are_plain(condition, x, y) || !(out.is_none() || PyArray_Check(out.ptr())))
        return others("where")(condition, x, y, out);
    const request call = make_request(condition, x, y);
    if (call.how == way::numpy) return others("where_numpy")(condition, x, y, out);
    return run(call, out);
}

std::string explain(nb::handle condition, nb::handle x, nb::handle y) {
    if (!are_plain(condition, x, y))
        return nb::cast<std::string>(others("explain")(condition, x, y));
    const request call = make_request(condition, x, y);
    switch (call.how) {
    case way::numpy:
        return std::string("numpy.where: ") + call.why + "\n";
    case way::cast:
        return std::string("maskwise, in pieces: ") + call.why + "\n";
    case way::plan:
        break;
    }
    return std::string("maskwise: ") + call.why + "\n" + maskwise::explain(plan_of(call));
}

// Returns the body's result. If the body throws, sets a Python exception and returns null.
template <class Body>
PyObject* guarded(const Body& body) {
    try {
        return nb::object(body()).release().ptr();
    } catch (nb::python_error& failure) {
        failure.restore();
    } catch (const nb::builtin_exception& failure) {
        PyErr_SetString(PyExc_TypeError, failure.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const error& failure) {
        PyErr_SetString(PyExc_ValueError, failure.what());
    } catch (const std::exception& failure) {
        PyErr_SetString(PyExc_RuntimeError, failure.what());
    }
    return nullptr;
}

// Returns the value of out=, or None. Returns null and sets an exception for other keywords.
PyObject* find_out(PyObject* const* values, PyObject* keywords) {
    PyObject* out = Py_None;
    for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_Size(keywords); ++i) {
        PyObject* const keyword = PyTuple_GetItem(keywords, i);
        if (PyUnicode_CompareWithASCIIString(keyword, "out") != 0)
            return PyErr_Format(PyExc_TypeError, "where() got an unexpected keyword argument '%U'",
                                keyword);
        out = values[i];
    }
    return out;
}

// A plain C entry, because a binding layer would take most of the time of a small call.
PyObject* enter_where(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
    PyObject* const out = find_out(arguments + count, keywords);
    if (out == nullptr) return nullptr;
    if (count == 3)
        return guarded([&] { return where(arguments[0], arguments[1], arguments[2], out); });
    if (count == 1 && out == Py_None)
        return guarded([&] { return numpy_where()(nb::handle(arguments[0])); });
    if (count == 2) {
        PyErr_SetString(PyExc_ValueError, "either both or neither of x and y should be given");
        return nullptr;
    }
    return PyErr_Format(PyExc_TypeError, "where() takes 1 or 3 positional arguments%s, got %zd",
                        count == 1 ? ", 3 with out" : "", count);
}

PyObject* enter_explain(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count != 3)
        return PyErr_Format(PyExc_TypeError,
                            "explain() takes the 3 positional arguments of where(), got %zd; "
                            "explain_attention() takes attention's",
                            count);
    return guarded([&] { return nb::cast(explain(arguments[0], arguments[1], arguments[2])); });
}

PyObject* enter_instruction_set(PyObject*, PyObject*) {
    return guarded([] { return nb::cast(std::string(instruction_set())); });
}

template <typename Function>
PyCFunction entry(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// Functions for users are plain C entries, because a binding layer's errors would name C++ types.
PyMethodDef methods[] = {
    {"where", entry(enter_where), METH_FASTCALL | METH_KEYWORDS, where_doc},
    {"explain", entry(enter_explain), METH_FASTCALL, explain_doc},
    {"instruction_set", enter_instruction_set, METH_NOARGS, instruction_set_doc},
};

enum class tensors : std::uint8_t { refused, read, read_without_gradient };

// Returns an attention operand as a NumPy array; none stays none. Returns an unset object if the
// core cannot read the value.
nb::object readable(nb::handle value, tensors allowed) {
    if (value.is_none() || PyArray_CheckExact(value.ptr())) return nb::borrow(value);
    if (allowed == tensors::refused) return {};
    return view_of_tensor(value, allowed == tensors::read_without_gradient);
}

// Returns nullopt if the core cannot read a value of the tuple. Throws nb::python_error (TypeError)
// if query, key or value, the first three values, is None.
template <std::size_t count>
std::optional<std::array<nb::object, count>> read_operands(nb::handle values, tensors allowed) {
    std::array<nb::object, count> arrays;
    for (std::size_t i = 0; i < count; ++i) {
        arrays[i] = readable(PyTuple_GetItem(values.ptr(), static_cast<Py_ssize_t>(i)), allowed);
        if (!arrays[i].is_valid()) return std::nullopt;
        constexpr const char* names[] = {"query", "key", "value"};
        if (arrays[i].is_none() && i < std::size(names))
            refuse(PyExc_TypeError, "%s is None, expected an array", names[i]);
    }
    return arrays;
}

bool is_torch_deterministic() {
    return nb::cast<bool>(MASKWISE_IMPORTED("torch", "are_deterministic_algorithms_enabled")());
}

bool is_torch_computing_gradients() {
    return nb::cast<bool>(MASKWISE_IMPORTED("torch", "is_grad_enabled")());
}

// `call` is a maskwise._call.AttentionCall. `arrays` has q, k, v, mask and sinks.
attention_call read_call(nb::handle call, std::span<nb::object> arrays, nb::handle out,
                         const shaped_rules* rules, const mask_maps* maps, bool on_torch) {
    using number = std::optional<double>;
    return {.q = std::move(arrays[0]),
            .k = std::move(arrays[1]),
            .v = std::move(arrays[2]),
            .mask = std::move(arrays[3]),
            .sinks = std::move(arrays[4]),
            .out = nb::borrow(out),
            .page_table = MASKWISE_ATTRIBUTE(nb::object, call, "page_table"),
            .rules = rules,
            .maps = maps,
            .on_torch = on_torch,
            .scale = MASKWISE_ATTRIBUTE(number, call, "scale"),
            .soft_cap = MASKWISE_ATTRIBUTE(number, call, "soft_cap").value_or(0),
            .enable_gqa = MASKWISE_ATTRIBUTE(bool, call, "enable_gqa"),
            .returns_statistics = MASKWISE_ATTRIBUTE(bool, call, "return_statistics"),
            .deterministic = MASKWISE_ATTRIBUTE(bool, call, "deterministic") ||
                             (on_torch && is_torch_deterministic()),
            .is_packed = MASKWISE_ATTRIBUTE(bool, call, "is_packed")};
}

// The Python functions return None if the core cannot read an operand.
template <nb::object (*function)(const attention_call&)>
void def_attention(nb::module_& module, const char* name) {
    const auto run_call = [](nb::handle call, nb::handle operands, nb::handle out,
                             const shaped_rules* rules, const mask_maps* maps, bool on_torch,
                             bool refuses_gradients) -> nb::object {
        const bool is_tracked = on_torch && refuses_gradients && is_torch_computing_gradients();
        auto arrays = read_operands<5>(operands, !on_torch    ? tensors::refused
                                                 : is_tracked ? tensors::read_without_gradient
                                                              : tensors::read);
        if (!arrays) return nb::none();
        return function(read_call(call, *arrays, out, rules, maps, on_torch));
    };
    module.def(name, run_call, "call"_a, "operands"_a, "out"_a.none(), "rules"_a.none(),
               "maps"_a.none(), "on_torch"_a, "refuses_gradients"_a);
}

void def_gradients(nb::module_& module) {
    const auto run_call = [](nb::handle call, nb::handle operands, const shaped_rules* rules,
                             const mask_maps* maps, bool wants_mask,
                             bool wants_sinks) -> nb::object {
        auto arrays = read_operands<8>(operands, tensors::read);
        if (!arrays) return nb::none();
        return attention_gradients({read_call(call, *arrays, nb::none(), rules, maps, true),
                                    (*arrays)[5], (*arrays)[6], (*arrays)[7], wants_mask,
                                    wants_sinks});
    };
    module.def("attention_gradients", run_call, "call"_a, "operands"_a, "rules"_a.none(),
               "maps"_a.none(), "wants_mask"_a, "wants_sinks"_a);
}

void* import_numpy() {
    import_array1(nullptr);
    return methods;
}

} // namespace

NB_MODULE(_core, module) {
    if (import_numpy() == nullptr) throw nb::python_error();
    // After maskwise.torch.install(), torch holds objects of this module until the process ends.
    nb::set_leak_warnings(false);
    module.attr("numpy_where") = numpy_where();
    nb::register_exception_translator([](const std::exception_ptr& caught, void*) {
        try {
            std::rethrow_exception(caught);
        } catch (const error& failure) {
            PyErr_SetString(PyExc_ValueError, failure.what());
        }
    });
    for (PyMethodDef& method : methods)
        module.attr(method.ml_name) =
            new_reference(PyCFunction_NewEx(&method, nullptr, module.attr("__name__").ptr()));
    nb::dict dialects;
    for (const auto& [name, form] : named_dialects) dialects[name] = static_cast<int>(form);
    module.attr("dialects") = dialects;
    module.def("select", &select);
    def_attention<attention>(module, "attention");
    def_attention<explain_attention>(module, "explain_attention");
    def_gradients(module);
    add_mask(module);
    module.def("output_of_where", [](nb::handle condition, nb::handle x, nb::handle y) {
        return allocate_output(make_request(condition, x, y));
    });
    module.def("check_overlaps", &check_overlaps);
    module.def("view", &view_of);
    module.def("view_at", &view_at);
    module.def("view_of_tensor", [](nb::handle value) -> nb::object {
        nb::object array = view_of_tensor(value, false);
        return array.is_valid() ? array : nb::none();
    });
    module.def("exported", &exported);
    module.def("install_torch_selects", &install_torch_selects);
    module.def("uninstall_torch_selects", &uninstall_torch_selects);
    module.def("count_torch_selects", &count_torch_selects);
    module.def("bound_torch_selects", &bound_torch_selects);
    module.def("version", [] { return std::string(version()); });
}

} // namespace maskwise::python
