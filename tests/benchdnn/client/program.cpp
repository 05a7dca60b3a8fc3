#include "client/program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace maskwise::bench {
namespace {

void set_attr(dnnl_graph_op_t handle, const std::string& name, const attribute& value) {
    const auto key = static_cast<dnnl_graph_op_attr_t>(find_attr(name)->value);
    call("dnnl_graph_op_set_attr", [&] {
        if (const auto* flag = std::get_if<bool>(&value)) {
            const std::uint8_t byte = *flag ? 1 : 0;
            return dnnl_graph_op_set_attr_bool(handle, key, &byte, 1);
        }
        if (const auto* text = std::get_if<std::string>(&value))
            return dnnl_graph_op_set_attr_str(handle, key, text->c_str(), text->size());
        if (const auto* number = std::get_if<std::int64_t>(&value))
            return dnnl_graph_op_set_attr_s64(handle, key, number, 1);
        if (const auto* real = std::get_if<float>(&value))
            return dnnl_graph_op_set_attr_f32(handle, key, real, 1);
        if (const auto* list = std::get_if<dims>(&value))
            return dnnl_graph_op_set_attr_s64(handle, key, list->data(), list->size());
        const auto& reals = std::get<std::vector<float>>(value);
        return dnnl_graph_op_set_attr_f32(handle, key, reals.data(), reals.size());
    });
}

op_handle make_op(const op& o) {
    op_handle handle;
    const auto kind = static_cast<dnnl_graph_op_kind_t>(find_op_kind(o.kind)->value);
    call("dnnl_graph_op_create",
         [&] { return dnnl_graph_op_create(handle.out(), o.id, kind, o.name.c_str()); });
    for (const auto& [name, value] : o.attrs) set_attr(handle.get(), name, value);
    for (const logical_tensor& t : o.inputs) {
        const dnnl_graph_logical_tensor_t lt = to_onednn(t);
        call("dnnl_graph_op_add_input", [&] { return dnnl_graph_op_add_input(handle.get(), &lt); });
    }
    for (const logical_tensor& t : o.outputs) {
        const dnnl_graph_logical_tensor_t lt = to_onednn(t);
        call("dnnl_graph_op_add_output",
             [&] { return dnnl_graph_op_add_output(handle.get(), &lt); });
    }
    return handle;
}

dnnl_fpmath_mode_t fpmath(const std::string& mode) {
    if (mode == "bf16") return dnnl_fpmath_mode_bf16;
    if (mode == "f16") return dnnl_fpmath_mode_f16;
    if (mode == "any") return dnnl_fpmath_mode_any;
    if (mode == "tf32") return dnnl_fpmath_mode_tf32;
    return dnnl_fpmath_mode_strict;
}

std::vector<const dnnl_graph_logical_tensor_t*>
pointers(const std::vector<dnnl_graph_logical_tensor_t>& tensors) {
    std::vector<const dnnl_graph_logical_tensor_t*> list;
    for (const auto& t : tensors) list.push_back(&t);
    return list;
}

} // namespace

dnnl_graph_logical_tensor_t to_onednn(const logical_tensor& t) {
    dnnl_graph_logical_tensor_t lt;
    const auto dtype = static_cast<dnnl_data_type_t>(t.dtype);
    const auto property_type = static_cast<dnnl_graph_tensor_property_t>(t.property_kind);
    const auto layout_type =
        t.layout_kind == layout::any ? dnnl_graph_layout_type_any : dnnl_graph_layout_type_strided;
    const auto rank = static_cast<std::int32_t>(t.shape.size());
    call("dnnl_graph_logical_tensor_init", [&] {
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

program::program(const library& lib, const graph& g) : lib_(lib), graph_(g) {
    call("dnnl_graph_graph_create", [&] {
        return dnnl_graph_graph_create_with_fpmath_mode(handle_.out(), dnnl_cpu,
                                                        fpmath(g.fpmath_mode));
    });
    if (lib_.graph_set_fpmath_mode)
        call("dnnl_graph_graph_set_fpmath_mode", [&] {
            return lib_.graph_set_fpmath_mode(handle_.get(), fpmath(g.fpmath_mode),
                                              g.fpmath_apply_to_int ? 1 : 0);
        });
    add_ops();
    call("dnnl_graph_graph_finalize", [&] { return dnnl_graph_graph_finalize(handle_.get()); });
    call("dnnl_graph_graph_filter", [&] {
        return dnnl_graph_graph_filter(handle_.get(), dnnl_graph_partition_policy_fusion);
    });
    take_partitions();
}

void program::add_ops() {
    for (const op& o : graph_.ops) {
        const op_handle handle = make_op(o);
        call("dnnl_graph_add_op", [&] { return dnnl_graph_add_op(handle_.get(), handle.get()); });
    }
}

void program::take_partitions() {
    std::size_t count = 0;
    call("dnnl_graph_graph_get_partition_num",
         [&] { return dnnl_graph_graph_get_partition_num(handle_.get(), &count); });
    if (count == 0) return;
    std::vector<dnnl_graph_partition_t> list(count, nullptr);
    call("dnnl_graph_graph_get_partitions",
         [&] { return dnnl_graph_graph_get_partitions(handle_.get(), count, list.data()); });
    for (dnnl_graph_partition_t partition : list) {
        program_step& step = steps_.emplace_back();
        *step.partition.out() = partition;
    }
    for (program_step& step : steps_) read_ports(step);
}

void program::read_ports(program_step& step) const {
    const dnnl_graph_partition_t p = step.partition.get();
    std::size_t count = 0;
    call("dnnl_graph_partition_get_op_num",
         [&] { return dnnl_graph_partition_get_op_num(p, &count); });
    step.op_ids.resize(count);
    call("dnnl_graph_partition_get_ops",
         [&] { return dnnl_graph_partition_get_ops(p, count, step.op_ids.data()); });
    std::uint8_t supported = 0;
    call("dnnl_graph_partition_is_supported",
         [&] { return dnnl_graph_partition_is_supported(p, &supported); });
    step.supported = supported != 0;
    call("dnnl_graph_partition_get_input_ports_num",
         [&] { return dnnl_graph_partition_get_input_ports_num(p, &count); });
    step.inputs.resize(count);
    call("dnnl_graph_partition_get_input_ports",
         [&] { return dnnl_graph_partition_get_input_ports(p, count, step.inputs.data()); });
    call("dnnl_graph_partition_get_output_ports_num",
         [&] { return dnnl_graph_partition_get_output_ports_num(p, &count); });
    step.outputs.resize(count);
    call("dnnl_graph_partition_get_output_ports",
         [&] { return dnnl_graph_partition_get_output_ports(p, count, step.outputs.data()); });
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
    call("dnnl_graph_compiled_partition_create", [&] {
        return dnnl_graph_compiled_partition_create(step.compiled.out(), step.partition.get());
    });
    auto inputs = pointers(step.inputs);
    auto outputs = pointers(step.outputs);
    call("dnnl_graph_partition_compile", [&] {
        return dnnl_graph_partition_compile(step.partition.get(), step.compiled.get(),
                                            inputs.size(), inputs.data(), outputs.size(),
                                            outputs.data(), lib_.engine());
    });
    query_outputs(step);
    step.owned_by_maskwise = lib_.maskwise_owns(step.compiled.get());
}

void program::query_outputs(program_step& step) {
    for (dnnl_graph_logical_tensor_t& t : step.outputs) {
        const std::size_t id = t.id;
        call("dnnl_graph_compiled_partition_query_logical_tensor", [&] {
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
