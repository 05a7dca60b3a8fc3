#pragma once

// A graph as described by a case file, without oneDNN's objects.

#include "model/names.hpp"
#include "support/oracle.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace maskwise::bench {

using dims = test::extent_list;
constexpr std::int64_t unknown_dim = std::numeric_limits<std::int64_t>::min();

// A fault in the user's input: a flag, a file or a case. The program skips a faulty case of a
// batch. After any other fault, the program prints one line and exits with 2.
struct input_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class layout { strided, any };
enum class property { undef = 0, variable = 1, constant = 2, host_scalar = 3 };

struct logical_tensor {
    std::size_t id = 0;
    data_type dtype = data_type::undef;
    bool rank_known = true;
    dims shape;   // empty: 0-D; an extent may be unknown_dim
    dims strides; // in elements; empty: dense row-major
    layout layout_kind = layout::strided;
    property property_kind = property::undef;

    bool is_known() const; // whether the rank and every extent are known
};

using attribute = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>,
                               std::vector<float>>;

struct op {
    std::size_t id = 0;
    std::string name;
    std::string kind;
    std::map<std::string, attribute> attrs;
    std::vector<logical_tensor> inputs;
    std::vector<logical_tensor> outputs;

    // The attribute's value, or `otherwise` if the op lacks the attribute. Throws input_error if
    // the attribute's type is not T.
    template <typename T>
    T attr(const std::string& key, T otherwise) const {
        const auto hit = attrs.find(key);
        if (hit == attrs.end()) return otherwise;
        const T* value = std::get_if<T>(&hit->second);
        if (!value)
            throw input_error("op " + std::to_string(id) + ": attribute '" + key +
                              "' has the wrong type");
        return *value;
    }
};

struct graph {
    std::string fpmath_mode = "strict";
    bool fpmath_apply_to_int = false;
    std::vector<op> ops; // read_case sorts them topologically
};

dims dense_strides(const dims& shape);  // an extent of 0 counts as 1, as in oneDNN
std::string to_text(const dims& shape); // "2x3x4"; "-" for 0-D; "?" for unknown extents

// NumPy's broadcast of two shapes. Throws input_error if the shapes do not broadcast.
dims broadcast(const dims& a, const dims& b);

// Converts an axis, which may be negative, to an index. Throws input_error if the axis is outside
// the rank.
std::size_t front_axis(std::int64_t axis, std::size_t rank);

void for_each_tensor(graph& g, const std::function<void(logical_tensor&)>& visit);
void for_each_tensor(const graph& g, const std::function<void(const logical_tensor&)>& visit);

// The first description of tensor `id`, or null.
const logical_tensor* find_tensor(const graph& g, std::size_t id);
const op* find_producer(const graph& g, std::size_t id);
std::vector<const op*> find_consumers(const graph& g, std::size_t id);
std::vector<std::size_t> graph_inputs(const graph& g); // ids without a producer, each once

// Sorts g.ops so that producers precede consumers. Throws input_error on a cycle.
void sort_topologically(graph& g);

bool has_op(const graph& g, std::string_view kind);

} // namespace maskwise::bench
