#include "graph/compiled_expression.hpp"

#include "base/cache.hpp"
#include "base/error.hpp"
#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace maskwise::graph {
namespace {

const logical_tensor& input_of(const compiled_expression& compiled, std::size_t number) {
    return compiled.inputs[compiled.input_positions[number]];
}

logical_tensor& dst_of(compiled_expression& compiled) {
    return compiled.outputs[compiled.dst_position];
}

void find_operands(const expression_group& group, compiled_expression& compiled) {
    compiled.input_positions.clear();
    for (std::size_t i = 0; i < group.inputs.size(); ++i) {
        const std::string name = "input " + std::to_string(i);
        compiled.input_positions.push_back(position_of(compiled.inputs, group.inputs[i], name));
        require_readable(input_of(compiled, i), name);
    }
    compiled.dst_position = position_of(compiled.outputs, group.ops.back().outputs[0], "dst");
}

compiled_expression described(const expression_group& group, std::span<const logical_tensor> inputs,
                              std::span<const logical_tensor> outputs) {
    compiled_expression compiled;
    compiled.inputs.assign(inputs.begin(), inputs.end());
    compiled.outputs.assign(outputs.begin(), outputs.end());
    find_operands(group, compiled);
    return compiled;
}

// A client may describe its tensors with other types than at add_op, as it may for a Select alone.
// Values between the operators then follow: each type of the graph becomes the one given for it,
// and a type that is not given stays. Unlike redescribe(), which prepares operators for oneDNN,
// this need not keep the two types of a cast apart, since the loop has casts from a type to itself.
// But it refuses two types given for one: the expression of such operators would mix types.
using type_map = std::map<data_type, data_type>;

void note_type(type_map& types, data_type recorded, data_type given) {
    const auto [known, is_new] = types.try_emplace(recorded, given);
    const bool is_allowed = given == recorded ||
                            (computes_in_f32(given) && computes_in_f32(recorded)) ||
                            (is_8_bit_integer(given) && is_8_bit_integer(recorded));
    if (!is_allowed || known->second != given)
        throw invalid_argument("a merged partition of " + std::string(to_string(recorded)) +
                               " is given " + std::string(to_string(given)) +
                               (is_new ? "" : " and " + std::string(to_string(known->second))));
}

type_map given_types(const expression_group& group, const compiled_expression& compiled) {
    type_map types;
    for (std::size_t i = 0; i < group.inputs.size(); ++i)
        note_type(types, group.inputs[i].type, input_of(compiled, i).type);
    note_type(types, group.ops.back().outputs[0].type,
              compiled.outputs[compiled.dst_position].type);
    return types;
}

std::vector<op> with_types(std::vector<op> ops, const type_map& types) {
    for (op& op : ops)
        for (auto* tensors : {&op.inputs, &op.outputs})
            for (logical_tensor& tensor : *tensors)
                if (const auto given = types.find(tensor.type); given != types.end())
                    tensor.type = given->second;
    return ops;
}

// Nothing where the types are those of the graph.
std::optional<expression_group> with_given_types(const expression_group& group,
                                                 const compiled_expression& compiled) {
    const type_map types = given_types(group, compiled);
    if (std::ranges::all_of(types, [](const auto& pair) { return pair.first == pair.second; }))
        return std::nullopt;
    auto groups = find_groups(with_types(group.ops, types), [](std::size_t) { return true; });
    if (groups.size() != 1 || groups[0].ops.size() != group.ops.size())
        throw invalid_argument("the operators cannot be merged with the types given");
    return std::move(groups[0]);
}

dims infer_dst(const expression_group& group, const compiled_expression& compiled) {
    shape_map shapes;
    for (std::size_t i = 0; i < group.inputs.size(); ++i)
        shapes[group.inputs[i].id] = input_of(compiled, i).extents;
    return infer_result(group.ops, std::move(shapes));
}

// dst follows the first value of its shape, as it would follow a Select's source; a mask only where
// there is none: oneDNN dies of some layouts that its own operators would not have chosen.
void complete_dst(const dims& shape, compiled_expression& compiled) {
    require_fitting_dst(dst_of(compiled), shape);
    std::vector<const logical_tensor*> models;
    for (std::size_t i = 0; i < compiled.input_positions.size(); ++i)
        models.push_back(&input_of(compiled, i));
    std::stable_partition(models.begin(), models.end(), [](const logical_tensor* input) {
        return input->type != data_type::boolean;
    });
    complete_output(dst_of(compiled), shape, models);
}

std::shared_ptr<const expression_plan> make_plan(const expression_group& group,
                                                 compiled_expression& compiled) {
    expression_desc desc{group.expression, {}, to_desc(dst_of(compiled))};
    for (std::size_t i = 0; i < compiled.input_positions.size(); ++i)
        desc.inputs.push_back(to_input_desc(input_of(compiled, i)));
    return make_expression_plan(std::move(desc), active_isa(), stream_threshold_bytes());
}

} // namespace

bool takes_types(const expression_group& group, std::span<const logical_tensor> inputs,
                 std::span<const logical_tensor> outputs) {
    const compiled_expression compiled = described(group, inputs, outputs);
    try {
        with_given_types(group, compiled);
    } catch (const invalid_argument&) {
        return false;
    }
    return true;
}

compiled_expression compile_group(const expression_group& recorded,
                                  std::span<const logical_tensor> inputs,
                                  std::span<const logical_tensor> outputs) {
    compiled_expression compiled = described(recorded, inputs, outputs);
    const auto typed = with_given_types(recorded, compiled);
    const expression_group& group = typed ? *typed : recorded;
    if (typed) find_operands(group, compiled);
    const dims shape = infer_dst(group, compiled);
    complete_dst(shape, compiled);
    compiled.is_empty = element_count(shape) == 0;
    compiled.plan = make_plan(group, compiled);
    return compiled;
}

std::optional<std::size_t> input_under_dst(const compiled_expression& compiled) {
    const logical_tensor& dst = compiled.outputs[compiled.dst_position];
    if (!compiled.plan->reorderings.empty()) return std::nullopt;
    for (const std::size_t position : compiled.input_positions) {
        const logical_tensor& input = compiled.inputs[position];
        if (input.may_be_overwritten() && input.type == dst.type && lie_alike(input, dst))
            return position;
    }
    return std::nullopt;
}

} // namespace maskwise::graph
