#pragma once

#include "support/case_generator.hpp"
#include "support/client/graph_client.hpp"

#include <string>
#include <vector>

namespace maskwise::fuzz {

using test::generator, test::host_scalar, test::logical_tensor;

struct op_description {
    std::size_t id = 0;
    dnnl_graph_op_kind_t kind{};
    std::string auto_broadcast; // empty: not set
    bool odd_attribute = false; // whether op has an attribute that Select lacks
    std::vector<logical_tensor> inputs, outputs;
    test::attribute_list attributes = {};
};

// A small graph, mostly with one Select. Sometimes the graph has neighbours of the Select, repeated
// ids, or a Select with wrong types or counts.
struct graph_description {
    std::vector<op_description> ops;
    dnnl_graph_partition_policy_t policy{};
    bool finalized = true;
    bool through_single_op = false; // partition_create_with_op instead of a graph
};

graph_description draw_graph(generator& random);

// Tensors that a client may pass to compile for one Select: the operator's tensors with complete
// shapes and layouts, or invalid tensors.
struct compile_description {
    std::vector<logical_tensor> inputs, outputs;
};

compile_description draw_compile(generator& random, const op_description& select);

// Removes the layout, and the rank or random extents. A client may know these only at compile.
void forget_shape(generator& random, logical_tensor& tensor);

// Describes a failing case, with a line per operator and tensor.
std::string to_string(const op_description& op);
std::string to_string(const compile_description& description);

} // namespace maskwise::fuzz
