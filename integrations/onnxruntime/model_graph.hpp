#pragma once

#include "runtime.hpp"

#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

// A graph of ONNX Runtime's, as the claims read it.
namespace maskwise::ort {

inline constexpr const char* own_domain = "com.microsoft";

struct node;

// Who reads a value: a node and its input, -1 for a graph inside the node.
struct reader {
    const node* by;
    std::int64_t input;
};

// An input that is left out and an output that is not used have no name, and nothing is known of
// them.
struct value {
    const runtime* with = nullptr;
    const OrtValueInfo* theirs = nullptr;
    std::string_view name;
    data_type type{};
    // -1 where unknown; nullopt where not even the rank is known, or it is more than max_rank.
    std::optional<dims> extents;
    bool has_too_many_dims = false; // more than max_rank
    bool is_constant = false;
    bool is_output = false; // of its graph
    // Of inputs of the graph, initializers and outer values one that is not theirs and has no type.
    const node* maker = nullptr;
    std::vector<reader> readers;

    bool is_given() const { return theirs != nullptr; }
    // The node that alone reads it, once; else one without a type.
    const node& only_reader() const;
    bool is_one_element() const; // known to be
    // A constant +0 of at most one dimension: it leaves the shape of what it is combined with.
    bool is_zero() const;
    // The number that a constant f32 of one element is.
    std::optional<float> number() const;

private:
    const void* element() const;
};

using operator_names = std::initializer_list<std::string_view>;
class model_graph;

struct node {
    const runtime* with = nullptr;
    const OrtNode* theirs = nullptr;
    // Of ONNX's operators and those that ONNX Runtime has itself; empty for a function of the
    // model's with the name of one.
    std::string_view type;
    std::string_view name;
    std::string_view provider; // empty where no provider has the node
    int since_version = 0;
    bool is_own = false; // of ONNX Runtime's own domain
    std::vector<const value*> inputs, outputs;

    bool is(std::string_view of) const { return type == of; }
    bool is_one_of(operator_names names) const;
    const value& input(std::size_t index) const;
    const value& result() const; // the first output
    // What makes an input.
    const node& producer(std::size_t index) const { return *input(index).maker; }
    // Whether the result and all inputs are there.
    bool is_complete() const;
    // Whether an input or an output is known to have more than max_rank dimensions.
    bool has_too_many_dims() const;

    // Those inside.
    std::vector<model_graph> graphs() const;
    // The numbers of an attribute; nothing where it is not given.
    template <class Number>
    std::optional<std::vector<Number>> attribute(const char* of, OrtOpAttrType kind) const;
    std::int64_t integer(const char* of, std::int64_t otherwise) const;
    // Names and numbers of all attributes that are one integer.
    std::vector<std::pair<std::string_view, std::int64_t>> integers() const;
    int version() const { return since_version; }
    float number(const char* of, float otherwise) const;
};

class model_graph {
public:
    // Lives no longer than what ONNX Runtime handed over.
    model_graph(const runtime& with, const OrtGraph* theirs);
    model_graph(model_graph&&) = default;

    const std::vector<node>& nodes() const { return nodes_; }

private:
    void read_values(node& of);
    value& find_value(const OrtValueInfo* theirs);

    const runtime& with_;
    std::vector<node> nodes_; // in topological order
    std::map<const OrtValueInfo*, value> values_;
};

// Of a node's inputs and outputs.
struct node_names {
    std::vector<std::string_view> inputs, outputs;
};
node_names names_of(const runtime& with, const OrtNode* theirs);

} // namespace maskwise::ort
