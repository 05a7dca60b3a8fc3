#include "client/program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace maskwise::bench {
namespace {

test::attribute_value to_onednn(const attribute& value) {
    return std::visit(
        [](const auto& held) -> test::attribute_value {
            if constexpr (std::is_same_v<decltype(held), const std::int64_t&>)
                return std::vector{held};
            else
                return held;
        },
        value);
}

test::owned<dnnl_graph_op_t> make_op(const op& o) {
    test::node described{
        o.id, static_cast<dnnl_graph_op_kind_t>(find_op_kind(o.kind)->value), {}, {}};
    described.name = o.name;
    for (const auto& [name, value] : o.attrs)
        described.attributes.emplace_back(static_cast<dnnl_graph_op_attr_t>(find_attr(name)->value),
                                          to_onednn(value));
    for (const logical_tensor& t : o.inputs) described.inputs.push_back(to_onednn(t));
    for (const logical_tensor& t : o.outputs) described.outputs.push_back(to_onednn(t));
    return test::make_op(described);
}

dnnl_fpmath_mode_t fpmath(const std::string& mode) {
    if (mode == "bf16") return dnnl_fpmath_mode_bf16;
    if (mode == "f16") return dnnl_fpmath_mode_f16;
    if (mode == "any") return dnnl_fpmath_mode_any;
    if (mode == "tf32") return dnnl_fpmath_mode_tf32;
    return dnnl_fpmath_mode_strict;
}

} // namespace

dnnl_graph_logical_tensor_t to_onednn(const logical_tensor& t) {
    dnnl_graph_logical_tensor_t lt;
    const auto dtype = static_cast<dnnl_data_type_t>(t.dtype);
    const auto property_type = static_cast<dnnl_graph_tensor_property_t>(t.property_kind);
    const auto layout_type =
        t.layout_kind == layout::any ? dnnl_graph_layout_type_any : dnnl_graph_layout_type_strided;
    const auto rank = static_cast<std::int32_t>(t.shape.size());
    test::call("dnnl_graph_logical_tensor_init", [&] {
        if (!t.rank_known || rank == 0)
            return dnnl_graph_logical_tensor_init(&lt, t.id, dtype, t.rank_known ? 0 : -1,
                                                  layout_type, property_type);
        if (t.strides.empty() || t.layout_kind == layout::any)
            return dnnl_graph_logical_tensor_init_with_dims(&lt, t.id, dtype, rank, t.shape.data(),
                                                            layout_type, property_type);
        return dnnl_graph_logical_tensor_init_with_strides(&lt, t.id, dtype, rank, t.shape.data(),
                                                           t.strides.data(), property_type);
    });
    return lt;
}

dims shape_of(const dnnl_graph_logical_tensor_t& t) {
    return t.ndims > 0 ? dims(t.dims, t.dims + t.ndims) : dims{};
}

dims strides_of(const dnnl_graph_logical_tensor_t& t) {
    return t.ndims > 0 ? dims(t.layout.strides, t.layout.strides + t.ndims) : dims{};
}

program::program(const graph& g) : graph_(g) {
    handle_ = test::make<dnnl_graph_graph_t>("dnnl_graph_graph_create", [&](auto* handle) {
        return dnnl_graph_graph_create_with_fpmath_mode(handle, dnnl_cpu, fpmath(g.fpmath_mode));
    });
    if (newer().set_fpmath_mode)
        test::call("dnnl_graph_graph_set_fpmath_mode", [&] {
            return newer().set_fpmath_mode(handle_.get(), fpmath(g.fpmath_mode),
                                           g.fpmath_apply_to_int ? 1 : 0);
        });
    for (const op& o : graph_.ops)
        test::call("dnnl_graph_add_op", [&, added = make_op(o)] {
            return dnnl_graph_add_op(handle_.get(), added.get());
        });
    test::call("dnnl_graph_graph_finalize",
               [&] { return dnnl_graph_graph_finalize(handle_.get()); });
    add_steps();
}

void program::add_steps() {
    for (test::owned_partition& partition : test::partitions_of(handle_.get())) {
        program_step& step = steps_.emplace_back();
        step.partition = std::move(partition);
        auto* const p = step.partition.get();
        step.op_ids = test::ops_of(p);
        step.supported = test::is_supported(p);
        step.inputs = test::inputs_of(p);
        step.outputs = test::outputs_of(p);
    }
}

bool program::read_by_later_step(const program_step& step, std::size_t id) const {
    const auto first = std::find_if(steps_.begin(), steps_.end(),
                                    [&](const program_step& s) { return &s == &step; });
    return std::any_of(first + 1, steps_.end(), [id](const program_step& later) {
        return std::any_of(later.inputs.begin(), later.inputs.end(),
                           [id](const auto& t) { return t.id == id; });
    });
}

void program::compile_step(program_step& step, bool any_between) {
    for (dnnl_graph_logical_tensor_t& t : step.inputs)
        if (const auto hit = produced_.find(t.id); hit != produced_.end()) t = hit->second;
    for (dnnl_graph_logical_tensor_t& t : step.outputs)
        if (any_between && read_by_later_step(step, t.id))
            t.layout_type = dnnl_graph_layout_type_any;
    step.compiled = test::compile(step.partition.get(), step.inputs, step.outputs);
    query_outputs(step);
    step.owned_by_maskwise = test::maskwise_owns(step.compiled.get());
}

void program::query_outputs(program_step& step) {
    for (dnnl_graph_logical_tensor_t& t : step.outputs) {
        const std::size_t id = t.id;
        test::call("dnnl_graph_compiled_partition_query_logical_tensor", [&] {
            return dnnl_graph_compiled_partition_query_logical_tensor(step.compiled.get(), id, &t);
        });
        const dims shape = shape_of(t);
        const bool complete =
            t.id == id && t.ndims >= 0 && t.layout_type == dnnl_graph_layout_type_strided &&
            std::none_of(shape.begin(), shape.end(), [](auto d) { return d < 0; });
        if (!complete)
            throw std::runtime_error(
                fmt::format("after compile, output {} is not a strided tensor of known shape", id));
        produced_[id] = t;
    }
}

void program::compile(bool any_between) {
    for (program_step& step : steps_) compile_step(step, any_between);
}

} // namespace maskwise::bench
