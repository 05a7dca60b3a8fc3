#include "graph/compiled_select.hpp"

#include "base/error.hpp"
#include "graph/compile_checks.hpp"
#include "schema/select_schema.hpp"

#include <string>

namespace maskwise::graph {
namespace {

constexpr const char* input_names[] = {"cond", "src_0", "src_1"};

compiled_select::positions find_positions(const op& select, std::span<const logical_tensor> inputs,
                                          std::span<const logical_tensor> outputs) {
    const auto input = [&](std::size_t slot) {
        return position_of(inputs, select.inputs[slot], input_names[slot]);
    };
    return {input(0), input(1), input(2), position_of(outputs, select.outputs[0], "dst")};
}

// Checks the operands and gives dst its shape and strides.
void complete_dst(const op& select, const logical_tensor& cond, const logical_tensor& src_0,
                  const logical_tensor& src_1, logical_tensor& dst) {
    require_readable(cond, input_names[0]);
    require_readable(src_0, input_names[1]);
    require_readable(src_1, input_names[2]);
    check_types(onednn_select(), cond.type, src_0.type, src_1.type, dst.type);
    const dims shape = infer_dst(onednn_select(), broadcast_of(select), cond.extents, src_0.extents,
                                 src_1.extents);
    require_fitting_dst(dst, shape);
    complete_output(dst, shape, std::array{&src_0, &src_1, &cond});
}

} // namespace

bool can_claim(const op& candidate, std::string& reason) {
    if (candidate.kind != op_kind::select || candidate.inputs.size() != 3 ||
        candidate.outputs.size() != 1) {
        reason = "not a Select of three inputs and one output";
        return false;
    }
    try {
        check_types(onednn_select(), candidate.inputs[0].type, candidate.inputs[1].type,
                    candidate.inputs[2].type, candidate.outputs[0].type);
    } catch (const argument_error& failure) {
        reason = failure.what();
        return false;
    }
    return true;
}

bool types_fit_schema(const op& select, std::span<const logical_tensor> inputs,
                      std::span<const logical_tensor> outputs) {
    const auto ports = find_positions(select, inputs, outputs);
    try {
        check_types(onednn_select(), inputs[ports.cond].type, inputs[ports.src_0].type,
                    inputs[ports.src_1].type, outputs[ports.dst].type);
    } catch (const argument_error&) {
        return false;
    }
    return true;
}

compiled_select compile_select(const op& select, std::span<const logical_tensor> inputs,
                               std::span<const logical_tensor> outputs) {
    compiled_select compiled;
    const auto& ports = compiled.ports = find_positions(select, inputs, outputs);
    const auto &cond = inputs[ports.cond], &src_0 = inputs[ports.src_0],
               &src_1 = inputs[ports.src_1];
    auto& dst = compiled.dst = outputs[ports.dst];
    complete_dst(select, cond, src_0, src_1, dst);
    compiled.plan = make_select_plan(
        {to_input_desc(cond), to_input_desc(src_0), to_input_desc(src_1), to_desc(dst)});
    compiled.is_empty = element_count(dst.extents) == 0;
    compiled.src_0_may_be_dst =
        !compiled.is_empty && src_0.may_be_overwritten() && lie_alike(src_0, dst);
    return compiled;
}

} // namespace maskwise::graph
