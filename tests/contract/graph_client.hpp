#pragma once

// Small graphs around a Select, as a client builds them.

#include "select_client.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

namespace maskwise::contract {

using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::partition;
using layout = logical_tensor::layout_type;
using property = logical_tensor::property_type;
using kind = op::kind;

inline constexpr auto f32 = tensor_type::f32, bf16 = tensor_type::bf16,
                      boolean = tensor_type::boolean;

inline logical_tensor dense(std::size_t id, const extents& shape, tensor_type type = f32) {
    return {id, type, shape, layout::strided};
}

inline op make(std::size_t id, kind what, const std::vector<logical_tensor>& inputs,
               const logical_tensor& output) {
    return {id, what, inputs, {output}, "op" + std::to_string(id)};
}

inline op soft_max(std::size_t id, const logical_tensor& input, const logical_tensor& output,
                   std::int64_t axis = -1) {
    op made = make(id, kind::SoftMax, {input}, output);
    made.set_attr<std::int64_t>(op::attr::axis, axis);
    return made;
}

inline std::vector<partition> partitions_of(const std::vector<op>& ops) {
    dnnl::graph::graph graph(dnnl::engine::kind::cpu);
    for (const op& each : ops) graph.add_op(each);
    graph.finalize();
    return graph.get_partitions(partition::policy::fusion);
}

// Whether the operator compiles as a partition of its own. It belongs to that graph then.
bool runs_alone(const op& what);

inline std::size_t id_of(const op& what) {
    std::size_t id = 0;
    dnnl::error::wrap_c_api(dnnl_graph_op_get_id(what.get(), &id), "an operator without id");
    return id;
}

inline bool has(const partition& each, std::size_t op) {
    const auto ops = each.get_ops();
    return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// Of a call, or of what oneDNN throws through its functions: a second compile of what it threw on
// gets a std::future_error from its cache.
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
