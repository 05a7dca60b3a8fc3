#include "onednn/partition/select_executable.hpp"

#include "exec/run_select.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/record/tensor_data.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>

namespace maskwise::onednn {

// oneTBB throws where it has no memory for its tasks.
abi::status execute_select(const graph::compiled_select& select, const select_pointers& p) {
    if (p.cond == nullptr || p.src_0 == nullptr || p.src_1 == nullptr || p.dst == nullptr)
        return select.is_empty ? abi::success : abi::invalid_arguments;
    return guarded([&] { run_select(*select.plan, p.cond, p.src_0, p.src_1, p.dst); });
}

select_executable::select_executable(const graph::op& select, const compile_call& call,
                                     std::span<const graph::logical_tensor> inputs,
                                     std::span<const graph::logical_tensor> outputs)
    : executable(call), select_(graph::compile_select(select, inputs, outputs)) {
    const auto& at = select_.at;
    outputs_[at.dst] = to_abi(select_.outputs[at.dst], outputs_[at.dst]);
    if (select_.src_0_may_be_dst) inplace_ = {inputs_[at.src_0].id, outputs_[at.dst].id};
}

bool select_executable::makes(std::size_t id) const {
    return outputs_[select_.at.dst].id == id;
}

abi::status select_executable::execute(const execute_call& call) const {
    const auto& at = select_.at;
    if (!call.has_lists() || std::max({at.cond, at.src_0, at.src_1}) >= call.num_inputs ||
        at.dst >= call.num_outputs)
        return abi::invalid_arguments;
    const auto source = [&](std::size_t position) {
        return source_of(select_.inputs[position], call.inputs[position]);
    };
    return execute_select(select_, {source(at.cond), source(at.src_0), source(at.src_1),
                                    memory_of(call.outputs[at.dst])});
}

std::string select_executable::describe() const {
    return to_string(*select_.plan);
}

} // namespace maskwise::onednn
