// Composites as they run.

#include "onednn/partition/composite.hpp"

#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/tensor_data.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <new>

namespace maskwise::onednn {
namespace {

bool is_one_element(const row_operand& operand) {
    const auto& strides = operand.strides_bytes;
    return operand.is_scalar && std::count(strides.begin(), strides.end(), 0) == strides.rank();
}

} // namespace

composite::scratch::~scratch() {
    for (const auto& [id, tensor] : tensors) call_real(&real_library::tensor_destroy, tensor);
}

std::size_t composite::scratch_bytes() const {
    return scratch_bytes_ == 0 ? 0 : scratch_bytes_ + scratch_alignment;
}

// On the client's memory where it gives some, else that of an earlier execution, else new memory.
std::unique_ptr<composite::scratch> composite::take_scratch(void* given) const {
    if (auto spare = given ? nullptr : spare_.take()) return spare;
    auto taken = std::make_unique<scratch>();
    if (given == nullptr)
        taken->memory = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes());
    std::byte* const first =
        first_aligned(given ? static_cast<std::byte*>(given) : taken->memory.get());
    for (const auto& [id, value] : inner_values_) {
        const auto status =
            call_real(&real_library::tensor_create, &taken->tensors[id], &value.tensor, engine_,
                      static_cast<void*>(first + value.offset_bytes));
        if (status != abi::success) throw std::bad_alloc();
    }
    return taken;
}

abi::status composite::run_chain(const tensor_lookup& find) const {
    if (rows_.rows == 0 || rows_.columns == 0) return abi::success; // addresses may be null
    std::array<const void*, max_row_operands> operands{};
    for (std::size_t i = 0; i < chain_->operands.size(); ++i) {
        const auto* tensor = find(chain_->operands[i].id);
        operands[i] = is_one_element(rows_.operands[i]) ? data_of(tensor) : memory_of(tensor);
    }
    std::array<const void*, fusion::max_boundary_terms> terms{};
    for (std::size_t i = 0; i < chain_->boundary.size(); ++i)
        terms[i] = data_of(find(chain_->boundary[i].tensor.id));
    row_pointers at{memory_of(find(scores_.id)),
                    memory_of(find(result_.id)),
                    {operands.data(), chain_->operands.size()}};
    if (statistics_) at.statistics = memory_of(find(statistics_->id));
    if (at.scores == nullptr || at.result == nullptr || (statistics_ && at.statistics == nullptr) ||
        std::ranges::count(at.operands, nullptr) > 0)
        return abi::invalid_arguments;
    return guarded([&] {
        at.causal_offset = fusion::boundary_of(chain_->boundary, terms);
        run_rows(rows_, at);
    });
}

abi::status composite::run_parts(abi::stream stream, const tensor_lookup& find) const {
    const auto wait = [stream] {
        return real().is_sycl() ? call_real(&real_library::stream_wait, stream) : abi::success;
    };
    auto status = before_ ? before_->execute(stream, find) : abi::success;
    if (status == abi::success && before_) status = wait();
    if (status == abi::success && chain_) status = run_chain(find);
    if (status == abi::success && after_) status = after_->execute(stream, find);
    // The next execution reuses the scratch memory.
    const auto waited = before_ || after_ ? wait() : abi::success;
    return status == abi::success ? waited : status;
}

abi::status composite::execute(const execute_call& call) const {
    if (!call.has_lists() || call.num_inputs < read_inputs_.size() ||
        call.num_outputs < needed_outputs_)
        return abi::invalid_arguments;
    std::unique_ptr<scratch> taken;
    const auto prepared = guarded([&] { taken = take_scratch(memory_of(call.scratchpad)); });
    if (prepared != abi::success) return prepared;
    const auto find = [&](std::size_t id) -> abi::const_tensor {
        if (const auto found = taken->tensors.find(id); found != taken->tensors.end())
            return found->second;
        if (const auto* input = find_by_id(read_inputs_, id))
            return call.inputs[input - read_inputs_.data()];
        const auto* output = find_by_id(outputs_, id);
        return output != nullptr ? call.outputs[output - outputs_.data()] : nullptr;
    };
    const auto status = run_parts(call.stream, std::cref(find)); // by reference: no allocation
    if (taken->memory) spare_.give_back(std::move(taken));
    return status;
}

} // namespace maskwise::onednn
