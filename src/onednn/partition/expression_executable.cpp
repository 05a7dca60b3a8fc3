#include "onednn/partition/expression_executable.hpp"

#include "exec/run_expression.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/record/tensor_data.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace maskwise::onednn {

expression_executable::expression_executable(const graph::expression_group& group,
                                             const compile_call& call)
    : executable(call),
      expression_(graph::compile_group(group, from_abi(std::span(call.inputs, call.in_num)),
                                       from_abi(std::span(call.outputs, call.out_num)))) {
    const std::size_t position = expression_.dst_position;
    outputs_[position] = to_abi(expression_.outputs[position], outputs_[position]);
    if (const auto input = graph::input_under_dst(expression_))
        inplace_ = {inputs_[*input].id, outputs_[position].id};
}

bool expression_executable::makes(std::size_t id) const {
    return outputs_[expression_.dst_position].id == id;
}

abi::status expression_executable::execute(const execute_call& call) const {
    const auto& positions = expression_.input_positions;
    if (!call.has_lists() || std::ranges::max(positions) >= call.num_inputs ||
        expression_.dst_position >= call.num_outputs)
        return abi::invalid_arguments;
    std::array<const void*, jit::max_inputs> sources{};
    for (std::size_t i = 0; i < positions.size(); ++i)
        sources[i] = source_of(expression_.inputs[positions[i]], call.inputs[positions[i]]);
    const auto inputs = std::span(sources).first(positions.size());
    void* const dst = memory_of(call.outputs[expression_.dst_position]);
    if (dst == nullptr || std::ranges::count(inputs, nullptr) > 0)
        return expression_.is_empty ? abi::success : abi::invalid_arguments;
    return guarded([&] { run_expression(*expression_.plan, inputs, dst); });
}

std::string expression_executable::describe() const {
    return to_string(*expression_.plan);
}

} // namespace maskwise::onednn
