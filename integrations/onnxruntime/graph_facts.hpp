#pragma once

#include "runtime.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace maskwise::ort {

// What the claims ask of ONNX Runtime's graph. Nodes and values are null where there is none: an
// input that is left out and an output that is not used have empty names, and no value.

std::vector<const abi::node*> nodes_of(const runtime& with, const abi::graph* graph);

std::string_view name_of(const runtime& with, const abi::node* node);
std::string_view name_of(const runtime& with, const abi::value_info* value);
// An operator of this type, ONNX's or of those that ONNX Runtime has itself, and not a function of
// the model's with its name; false for a node that is null.
bool is_operator(const runtime& with, const abi::node* node, std::string_view type);
int since_version(const runtime& with, const abi::node* node);
// Empty where no provider has the node.
std::string_view provider_of(const runtime& with, const abi::node* node);
const abi::value_info* output_of(const runtime& with, const abi::node* node);
std::vector<const abi::value_info*> inputs_of(const runtime& with, const abi::node* node);
// Whether its first output and all inputs are there.
bool is_complete(const runtime& with, const abi::node* node);
// Whether an input or an output is known to have more than max_rank dimensions.
bool has_too_many_dims(const runtime& with, const abi::node* node);
// Whether the value is an output of its graph, and how many inputs of nodes read it.
bool is_graph_output(const runtime& with, const abi::value_info* value);
std::size_t reader_count(const runtime& with, const abi::value_info* value);
const abi::value_info* input_of(const runtime& with, const abi::node* node, std::size_t index);
// Absent ones are null.
std::vector<const abi::value_info*> outputs_of(const runtime& with, const abi::node* node);
// The node that makes a value or an input; null for inputs of the graph, initializers and outer
// values.
const abi::node* maker_of(const runtime& with, const abi::value_info* value);
const abi::node* producer_of(const runtime& with, const abi::node* node, std::size_t input);

// Who reads a value, or a node's first output: node and input.
struct reader {
    const abi::node* node;
    std::int64_t input;
};
std::vector<reader> readers_of(const runtime& with, const abi::value_info* value);
std::vector<reader> readers_of(const runtime& with, const abi::node* node);

struct value_facts {
    abi::element_type element{};
    // -1 where unknown; nullopt where not even the rank is known, or it is more than max_rank.
    std::optional<dims> extents;
    bool has_too_many_dims = false; // more than max_rank

    // Known to be.
    bool is_one_element() const;
};
value_facts facts_of(const runtime& with, const abi::value_info* value);
value_facts facts_of_output(const runtime& with, const abi::node* node);

bool is_constant(const runtime& with, const abi::value_info* value);
// A constant +0 of at most one dimension: it leaves the shape of what it is combined with.
bool is_zero(const runtime& with, const abi::value_info* value);

// An attribute by its name: one integer, several, or one f32; nothing where it is not given.
std::optional<std::int64_t> attribute_of(const runtime& with, const abi::node* node,
                                         const char* name);
std::optional<std::vector<std::int64_t>> attributes_of(const runtime& with, const abi::node* node,
                                                       const char* name);
std::optional<float> float_attribute_of(const runtime& with, const abi::node* node,
                                        const char* name);

// The value of a constant f32 of one element.
std::optional<float> constant_float(const runtime& with, const abi::node* node, std::size_t input);

} // namespace maskwise::ort
