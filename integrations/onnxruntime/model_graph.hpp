#pragma once

#include "runtime.hpp"

#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

// A read-only view of a graph of ONNX Runtime, in which Maskwise claims nodes.
namespace maskwise::ort {

inline constexpr const char* microsoft_domain = "com.microsoft";

struct node;

// A reader of a value. `input` is -1 if a graph inside the node reads the value.
struct reader {
    const struct node* node;
    std::int64_t input;
};

// A value of a graph. An omitted input or output is a value with a null handle and no name.
struct value {
    const runtime* api = nullptr;
    const OrtValueInfo* handle = nullptr;
    std::string_view name;
    data_type type{};
    // An extent of -1 is unknown. nullopt: the rank is unknown or above max_rank, or the value is
    // in the body of a Loop and may change its rank.
    std::optional<dims> extents;
    bool has_too_many_dims = false; // more than max_rank
    bool is_constant = false;
    bool is_output = false; // of the graph
    // A node without handle and type for graph inputs, initializers and values of outer graphs.
    const node* producer = nullptr;
    std::vector<reader> readers;

    bool is_given() const { return handle != nullptr; }
    // Returns the node that reads the value, if there is exactly one reader; else a node without a
    // type.
    const node& only_reader() const;
    bool is_one_element() const;
    // Whether the value is a constant +0 with one element and rank 0 or 1, which broadcasts to the
    // other operands' shape.
    bool is_zero() const;
    // The value of a one-element f32 constant; nullopt for other values.
    std::optional<float> number() const;

private:
    const void* element() const;
};

using operator_names = std::initializer_list<std::string_view>;
class model_graph;

struct node {
    const runtime* api = nullptr;
    const OrtNode* handle = nullptr;
    // The operator's name in ONNX's domain, or in com.microsoft if claims recognize the name.
    // Empty for all other operators.
    std::string_view type;
    std::string_view name;
    std::string_view provider; // empty if no provider claimed the node
    int since_version = 0;
    bool is_microsoft = false; // in the domain com.microsoft
    std::vector<const value*> inputs, outputs;

    bool is(std::string_view operator_type) const { return type == operator_type; }
    bool is_one_of(operator_names names) const;
    const value& input(std::size_t index) const;
    const value& result() const; // the first output
    const node& producer(std::size_t index) const { return *input(index).producer; }
    // Whether the result and all inputs are present.
    bool is_complete() const;
    // Whether an input or an output is known to have more than max_rank dimensions.
    bool has_too_many_dims() const;

    // Graphs inside the node, for example the branches of an If.
    std::vector<model_graph> graphs() const;
    // The numbers of an attribute; nullopt if the attribute is unset.
    template <class Number>
    std::optional<std::vector<Number>> attribute(const char* attribute_name,
                                                 OrtOpAttrType kind) const;
    std::int64_t integer(const char* attribute_name, std::int64_t fallback) const;
    // All integer attributes, with names.
    std::vector<std::pair<std::string_view, std::int64_t>> integers() const;
    int version() const { return since_version; }
    float number(const char* attribute_name, float fallback) const;
};

class model_graph {
public:
    // Must not outlive `handle`.
    model_graph(const runtime& api, const OrtGraph* handle);
    model_graph(model_graph&&) = default;

    const std::vector<node>& nodes() const { return nodes_; }

private:
    void read_values(node& node);
    value& find_value(const OrtValueInfo* handle);

    const runtime& api_;
    std::vector<node> nodes_; // in topological order
    std::map<const OrtValueInfo*, value> values_;
};

struct node_names {
    std::vector<std::string_view> inputs, outputs;
};
node_names names_of(const runtime& api, const OrtNode* handle);

} // namespace maskwise::ort
