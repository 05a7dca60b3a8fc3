// The parts of Python's Mask: rules, and cached tile maps of an array that does not change.
#include "entries.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <vector>

namespace maskwise::python {
namespace {

using numbers = std::vector<std::int64_t>;
using pair = std::array<std::int64_t, 2>;
using four = std::array<std::int64_t, 4>;

shaped_rules make_rules(bool causal, bool from_end, bool in_documents, numbers offsets,
                        const std::optional<pair>& window, std::int64_t first_keys,
                        const std::optional<pair>& chunks, numbers prefixes, numbers starts,
                        numbers lengths, const std::vector<std::vector<four>>& documents,
                        const std::vector<std::vector<float>>& slopes) {
    shaped_rules rules{{.offsets = std::move(offsets),
                        .from_end = from_end,
                        .in_documents = in_documents,
                        .causal = causal}};
    if (window) rules.window = {(*window)[0], (*window)[1], first_keys};
    if (chunks) rules.chunks = {(*chunks)[0], (*chunks)[1]};
    rules.prefixes = std::move(prefixes);
    rules.starts = std::move(starts);
    rules.lengths = std::move(lengths);
    for (const auto& heads : slopes) {
        rules.slope_heads = std::ssize(heads);
        rules.slopes.insert(rules.slopes.end(), heads.begin(), heads.end());
    }
    for (const auto& list : documents) {
        auto& sequence = rules.documents.emplace_back();
        for (const auto& [first_row, rows, first_key, keys] : list)
            sequence.push_back({first_row, rows, first_key, keys});
    }
    return rules;
}

nb::object written(const shaped_rules& rules, std::int64_t sequences, std::int64_t rows,
                   std::int64_t keys) {
    npy_intp extents[] = {sequences, rows, keys};
    nb::object array = new_reference(PyArray_SimpleNew(3, extents, NPY_BOOL));
    auto* const bytes = static_cast<std::byte*>(PyArray_DATA(as_array(array)));
    for (std::int64_t i = 0; i < sequences; ++i)
        write_mask(rules, sequences, i, rows, keys, bytes + i * rows * keys);
    return array;
}

nb::object biases(const shaped_rules& rules, std::int64_t sequences, std::int64_t heads,
                  std::int64_t rows, std::int64_t keys) {
    require_slope_heads(rules, heads);
    npy_intp extents[] = {sequences, heads, rows, keys};
    nb::object array = new_reference(PyArray_SimpleNew(4, extents, NPY_FLOAT32));
    auto* next = static_cast<float*>(PyArray_DATA(as_array(array)));
    for (std::int64_t i = 0; i < sequences; ++i)
        for (std::int64_t head = 0; head < heads; ++head, next += rows * keys)
            write_bias(rules, sequences, i, heads, head, rows, keys, next);
    return array;
}

} // namespace

void require_slope_heads(const shaped_rules& rules, std::int64_t heads) {
    if (!rules.slopes.empty() && rules.slope_heads != heads)
        refuse(PyExc_ValueError, "slopes are of %lld heads, the result has %lld",
               static_cast<long long>(rules.slope_heads), static_cast<long long>(heads));
}

void add_mask(nb::module_& module) {
    nb::class_<shaped_rules>(module, "Rules")
        .def(nb::new_(&make_rules), nb::arg("causal"), nb::arg("from_end"), nb::arg("in_documents"),
             nb::arg("offsets"), nb::arg("window").none(), nb::arg("first_keys"),
             nb::arg("chunks").none(), nb::arg("prefixes"), nb::arg("starts"), nb::arg("lengths"),
             nb::arg("documents"), nb::arg("slopes"))
        .def("written", &written)
        .def("biases", &biases);
    nb::class_<mask_maps>(module, "Maps").def(nb::init<>());
}

} // namespace maskwise::python
