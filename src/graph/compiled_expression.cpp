#include "graph/compiled_expression.hpp"

#include "base/cache.hpp"
#include "base/error.hpp"
#include "exec/run_expression.hpp"
#include "exec/run_select.hpp"
#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "graph/output_layout.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

namespace maskwise::graph {
namespace {

constexpr std::size_t alignment = 64;

dims infer_root(const expression_group& group, const compiled_expression& compiled) {
    shape_map shapes;
    for (std::size_t i = 0; i < group.input_ids.size(); ++i)
        shapes[group.input_ids[i]] = compiled.inputs[compiled.input_positions[i]].extents;
    return infer_result(group.ops, std::move(shapes));
}

void find_operands(const expression_group& group, compiled_expression& compiled) {
    compiled.input_positions.clear();
    for (const std::size_t id : group.input_ids) {
        const std::string name = "input " + std::to_string(compiled.input_positions.size());
        logical_tensor port;
        port.id = id;
        compiled.input_positions.push_back(position_of(compiled.inputs, port, name));
        require_readable(compiled.inputs[compiled.input_positions.back()], name);
    }
    compiled.dst_position = position_of(compiled.outputs, group.ops.back().outputs[0], "dst");
}

// A client may describe its tensors with other types than at add_op, as it may for a Select alone.
// Values between the operators then follow: each type of the graph becomes the one given for it.
using type_map = std::map<data_type, data_type>;

void note_type(type_map& types, data_type recorded, data_type given) {
    const auto [known, is_new] = types.try_emplace(recorded, given);
    const bool is_allowed = given == recorded || (computes_in_f32(given) && computes_in_f32(recorded)) ||
                            (is_8_bit_integer(given) && is_8_bit_integer(recorded));
    if (!is_allowed || known->second != given)
        throw invalid_argument("a merged partition of " + std::string(to_string(recorded)) +
                               " is given " + std::string(to_string(given)) +
                               (is_new ? "" : " and " + std::string(to_string(known->second))));
}

type_map given_types(const expression_group& group, const compiled_expression& compiled) {
    type_map types;
    for (std::size_t i = 0; i < group.input_ids.size(); ++i) {
        const auto recorded =
            std::find_if(group.inputs.begin(), group.inputs.end(),
                         [&](const auto& input) { return input.id == group.input_ids[i]; });
        note_type(types, recorded->type, compiled.inputs[compiled.input_positions[i]].type);
    }
    note_type(types, group.ops.back().outputs[0].type,
              compiled.outputs[compiled.dst_position].type);
    return types;
}

// Nothing where the types are those of the graph.
std::optional<expression_group> with_given_types(const expression_group& group,
                                                 const compiled_expression& compiled) {
    const type_map types = given_types(group, compiled);
    if (std::all_of(types.begin(), types.end(), [](const auto& t) { return t.first == t.second; }))
        return std::nullopt;
    auto ops = group.ops;
    for (op& each : ops)
        for (auto* list : {&each.inputs, &each.outputs})
            for (auto& tensor : *list)
                if (const auto found = types.find(tensor.type); found != types.end())
                    tensor.type = found->second;
    auto groups = find_groups(ops, [](std::size_t) { return true; });
    if (groups.size() != 1 || groups[0].ops.size() != ops.size())
        throw invalid_argument("the operators cannot be merged with the types given");
    return std::move(groups[0]);
}

// dst follows the first value of its shape, as it would follow a Select's source; a mask only where
// there is none: oneDNN dies of some layouts that its own operators would not have chosen.
void complete_dst(const dims& shape, compiled_expression& compiled) {
    logical_tensor& dst = compiled.outputs[compiled.dst_position];
    require_fitting_dst(dst, shape);
    std::vector<const logical_tensor*> models;
    for (const bool is_mask : {false, true})
        for (const std::size_t position : compiled.input_positions) {
            const logical_tensor& input = compiled.inputs[position];
            if ((input.type == data_type::boolean) == is_mask) models.push_back(&input);
        }
    complete_output(dst, shape, models);
}

// The extents of `operand` without gaps, its dimensions in the order of dst's strides.
tensor_desc in_order_of(const tensor_desc& dst, const tensor_desc& operand) {
    const int rank = operand.extents.rank(), missing = dst.extents.rank() - rank;
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
        const auto left = dst.strides_bytes[missing + a], right = dst.strides_bytes[missing + b];
        return left != right ? left < right : a > b;
    });
    tensor_desc dense{operand.type, operand.extents, dims(rank, 0)};
    auto stride = static_cast<std::int64_t>(width_bytes(operand.type));
    for (const int d : order) {
        dense.strides_bytes[d] = stride;
        stride *= std::max<std::int64_t>(operand.extents[d], 1);
    }
    return dense;
}

void add_reordering(compiled_expression& compiled, std::size_t operand, const tensor_desc& from,
                    const tensor_desc& to, const tensor_desc& inside) {
    const tensor_desc cond = dense_desc(data_type::boolean, {});
    compiled.reorderings.push_back(
        {make_select_plan({cond, from, from, to}), operand, compiled.scratch_bytes});
    const auto bytes = static_cast<std::size_t>(span_bytes(inside));
    compiled.scratch_bytes += (bytes + alignment - 1) / alignment * alignment;
}

void make_plan(const expression_group& group, compiled_expression& compiled) {
    const tensor_desc dst = to_desc(compiled.outputs[compiled.dst_position]);
    tensor_desc run_dst = dst;
    if (!runs_along(dst, dst)) {
        run_dst = in_order_of(dst, dst);
        add_reordering(compiled, jit::dst_operand, run_dst, dst, run_dst);
    }
    expression_desc desc{group.expression, {}, run_dst};
    for (const std::size_t position : compiled.input_positions) {
        const tensor_desc given = to_input_desc(compiled.inputs[position]);
        tensor_desc input = given;
        if (!runs_along(given, run_dst)) {
            input = in_order_of(run_dst, given);
            add_reordering(compiled, desc.inputs.size(), given, input, input);
        }
        desc.inputs.push_back(input);
    }
    compiled.plan = make_expression_plan(std::move(desc), active_isa(), stream_threshold_bytes());
}

} // namespace

compiled_expression compile_group(const expression_group& recorded,
                                  std::span<const logical_tensor> inputs,
                                  std::span<const logical_tensor> outputs) {
    compiled_expression compiled;
    compiled.inputs.assign(inputs.begin(), inputs.end());
    compiled.outputs.assign(outputs.begin(), outputs.end());
    find_operands(recorded, compiled);
    const auto typed = with_given_types(recorded, compiled);
    const expression_group& group = typed ? *typed : recorded;
    if (typed) find_operands(group, compiled);
    const dims shape = infer_root(group, compiled);
    complete_dst(shape, compiled);
    compiled.is_empty = element_count(shape) == 0;
    make_plan(group, compiled);
    if (!compiled.reorderings.empty()) compiled.spare = std::make_shared<spare_memory>();
    return compiled;
}

std::optional<std::size_t> input_under_dst(const compiled_expression& compiled) {
    const logical_tensor& dst = compiled.outputs[compiled.dst_position];
    if (!compiled.reorderings.empty()) return std::nullopt;
    for (const std::size_t position : compiled.input_positions) {
        const logical_tensor& input = compiled.inputs[position];
        const bool may_be_written = input.property != property_kind::host_scalar &&
                                    input.property != property_kind::constant;
        if (may_be_written && input.type == dst.type && lie_alike(input, dst)) return position;
    }
    return std::nullopt;
}

void run(const compiled_expression& compiled, std::span<const void* const> inputs, void* dst) {
    if (compiled.reorderings.empty()) return run_expression(*compiled.plan, inputs, dst);
    auto scratch = compiled.spare->take(compiled.scratch_bytes + alignment);
    const auto start = reinterpret_cast<std::uintptr_t>(scratch.get());
    std::byte* const first = scratch.get() + (alignment - start % alignment) % alignment;
    std::array<const void*, jit::max_inputs> operands{};
    std::copy(inputs.begin(), inputs.end(), operands.begin());
    void* result = dst;
    constexpr bool always = true;
    for (const reordering& each : compiled.reorderings) {
        std::byte* const inside = first + each.offset_bytes;
        if (each.operand == jit::dst_operand) {
            result = inside;
            continue;
        }
        const void* from = inputs[each.operand];
        run_select(*each.plan, &always, from, from, inside);
        operands[each.operand] = inside;
    }
    run_expression(*compiled.plan, std::span(operands).first(inputs.size()), result);
    if (result != dst) run_select(*compiled.reorderings[0].plan, &always, result, result, dst);
    compiled.spare->give_back(std::move(scratch));
}

} // namespace maskwise::graph
