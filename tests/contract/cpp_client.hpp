#pragma once

// Helpers for clients of oneDNN Graph's C++ header.

#include "support/client/graph_client.hpp"
#include "support/client/library_facts.hpp"

#include "oneapi/dnnl/dnnl_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <vector>

namespace maskwise::contract {

using test::fuses_attention, test::knows_select, test::library, test::merges, test::plugin_expected,
    test::plugin_is_loaded;

using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::partition;
using tensor_type = logical_tensor::data_type;
using layout = logical_tensor::layout_type;
using property = logical_tensor::property_type;
using kind = op::kind;
using extents = std::vector<std::int64_t>;
using ids = std::vector<std::size_t>;

inline constexpr auto f32 = tensor_type::f32, bf16 = tensor_type::bf16,
                      boolean = tensor_type::boolean;

dnnl::engine& engine();
dnnl::stream& stream();

inline bool maskwise_owns(const dnnl::graph::compiled_partition& compiled) {
    return test::maskwise_owns(compiled.get());
}

inline logical_tensor dense(std::size_t id, const extents& shape, tensor_type type = f32) {
    return {id, type, shape, layout::strided};
}

inline op make(std::size_t id, kind op_kind, const std::vector<logical_tensor>& inputs,
               const logical_tensor& output) {
    return {id, op_kind, inputs, {output}, "op" + std::to_string(id)};
}

op soft_max(std::size_t id, const logical_tensor& input, const logical_tensor& output,
            std::int64_t axis = -1);

std::vector<partition> partitions_of(const std::vector<op>& ops,
                                     partition::policy which = partition::policy::fusion);

inline bool has(const partition& each, std::size_t op) {
    const auto ops = each.get_ops();
    return std::find(ops.begin(), ops.end(), op) != ops.end();
}

std::size_t id_of(const op& node);
ids ids_of(const std::vector<logical_tensor>& ports);

std::size_t element_count(const extents& shape);

inline dnnl::graph::compiled_partition compile(const partition& subgraph,
                                               const std::vector<logical_tensor>& inputs,
                                               const std::vector<logical_tensor>& outputs) {
    return subgraph.compile(inputs, outputs, engine());
}

struct bound {
    logical_tensor desc;
    void* memory;
};
// Executes and waits.
void execute(const dnnl::graph::compiled_partition& compiled, const std::vector<bound>& inputs,
             const std::vector<bound>& outputs);

// Compiles and runs the partitions in order. Descriptions in `now` replace those of the ports.
// Fills inputs that `memory` lacks: masks with true, f32 with multiples of 0.5.
using tensors = std::map<std::size_t, std::vector<std::uint8_t>>;
void run(const std::vector<partition>& partitions, tensors& memory,
         const std::map<std::size_t, logical_tensor>& now = {});
float element(const tensors& memory, std::size_t id, std::size_t index);

// Returns success or the status that oneDNN throws in `body`. If a compile threw, a second compile
// of the same partition throws std::future_error from oneDNN's cache.
template <class Body>
dnnl_status_t status_of(Body&& body) {
    try {
        body();
        return dnnl_success;
    } catch (const dnnl::error& refused) {
        return refused.status;
    } catch (const std::future_error&) {
        return dnnl_runtime_error;
    }
}

} // namespace maskwise::contract
