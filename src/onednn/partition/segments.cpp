#include "onednn/partition/segments.hpp"

#include "exec/run_select.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/record/tensor_data.hpp"

#include <span>

namespace maskwise::onednn {
namespace {

const void* address_of(const execution& tensors, const source& input) {
    const abi::const_tensor tensor = tensors.tensor(input.memory);
    return input.is_number ? data_of(tensor) : memory_of(tensor);
}

} // namespace

select_segment::select_segment(const graph::compiled_select& select,
                               const std::array<source, 3>& sources, place dst)
    : plan_(select.plan), is_empty_(select.is_empty), sources_(sources), dst_(dst) {}

// Guarded, because oneTBB throws if it has no memory for its tasks.
abi::status select_segment::run(const execution& tensors) const {
    const void* const cond = address_of(tensors, sources_[0]);
    const void* const src_0 = address_of(tensors, sources_[1]);
    const void* const src_1 = address_of(tensors, sources_[2]);
    void* const dst = memory_of(tensors.tensor(dst_));
    if (cond == nullptr || src_0 == nullptr || src_1 == nullptr || dst == nullptr)
        return is_empty_ ? abi::success : abi::invalid_arguments;
    return guarded([&] { run_select(*plan_, cond, src_0, src_1, dst); });
}

abi::status block_segment::run(const execution& tensors) const {
    std::array<const void*, fusion::max_block_inputs> inputs{};
    for (std::size_t i = 0; i < sources_.size(); ++i) inputs[i] = address_of(tensors, sources_[i]);
    const fusion::block_addresses addresses{
        std::span(inputs).first(sources_.size()), memory_of(tensors.tensor(results_.dst)),
        results_.statistics ? memory_of(tensors.tensor(*results_.statistics)) : nullptr};
    return guarded([&] { block_->run(addresses); });
}

abi::status gradients_segment::run(const execution& tensors) const {
    std::array<const void*, fusion::max_gradients_inputs> inputs{};
    for (std::size_t i = 0; i < sources_.size(); ++i) inputs[i] = address_of(tensors, sources_[i]);
    std::array<void*, 3> results{};
    for (std::size_t i = 0; i < results.size(); ++i)
        results[i] = memory_of(tensors.tensor(results_[i]));
    return guarded([&] { gradients_->run(std::span(inputs).first(sources_.size()), results); });
}

} // namespace maskwise::onednn
