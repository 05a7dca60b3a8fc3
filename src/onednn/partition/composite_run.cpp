// Composites as they run.

#include "onednn/partition/composite.hpp"

#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/tensor_data.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>

namespace maskwise::onednn {
namespace {

bool is_one_element(const row_operand& operand) {
    const auto& strides = operand.strides_bytes;
    return operand.is_scalar && std::count(strides.begin(), strides.end(), 0) == strides.rank();
}

} // namespace

void composite_scratch::make_tensors(const composite& owner, std::byte* given) {
    std::byte* const first = first_aligned(given);
    for (const auto& [id, place] : owner.internal_) {
        const auto status =
            call_real(&real_library::tensor_create, &tensors[id], &place.tensor, owner.engine_,
                      static_cast<void*>(first + place.offset_bytes));
        if (status != abi::success) throw std::bad_alloc();
    }
}

composite_scratch::~composite_scratch() {
    for (const auto& [id, tensor] : tensors) call_real(&real_library::tensor_destroy, tensor);
}

// The client's tensors and those of one scratch, by id.
class composite::bound_tensors : public tensor_lookup {
public:
    bound_tensors(const composite& owner, const composite_scratch& scratch,
                  const abi::const_tensor* inputs, const abi::const_tensor* outputs)
        : owner_(owner), scratch_(scratch), inputs_(inputs), outputs_(outputs) {}

    abi::const_tensor find(std::size_t id) const override {
        if (const auto found = scratch_.tensors.find(id); found != scratch_.tensors.end())
            return found->second;
        if (const auto* input = find_by_id(owner_.own_inputs_, id))
            return inputs_[input - owner_.own_inputs_.data()];
        const auto* output = find_by_id(owner_.outputs_, id);
        return output != nullptr ? outputs_[output - owner_.outputs_.data()] : nullptr;
    }

private:
    const composite& owner_;
    const composite_scratch& scratch_;
    const abi::const_tensor* inputs_;
    const abi::const_tensor* outputs_;
};

std::size_t composite::scratch_bytes() const {
    return scratch_bytes_ == 0 ? 0 : scratch_bytes_ + scratch_alignment;
}

// The client's memory where it gives some, else of the last execution or new.
std::unique_ptr<composite_scratch> composite::take_scratch(void* given) const {
    auto scratch = given ? nullptr : spare_.take();
    if (scratch) return scratch;
    scratch = std::make_unique<composite_scratch>();
    if (given == nullptr)
        scratch->memory = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes());
    scratch->make_tensors(*this, given ? static_cast<std::byte*>(given) : scratch->memory.get());
    return scratch;
}

void composite::give_back(std::unique_ptr<composite_scratch> scratch) const {
    if (scratch->memory) spare_.give_back(std::move(scratch));
}

abi::status composite::run_chain(const bound_tensors& tensors) const {
    std::array<std::shared_ptr<const tensor_record>, max_row_operands + 1> kept;
    std::array<const void*, max_row_operands> operands{};
    std::size_t next = 0;
    for (std::size_t i = 0; i < chain_.operands.size(); ++i) {
        const auto* tensor = tensors.find(chain_.operands[i].id);
        operands[i] =
            is_one_element(rows_.operands[i]) ? data_of(tensor, kept[next++]) : memory_of(tensor);
    }
    row_pointers at{memory_of(tensors.find(scores_.id)),
                    memory_of(tensors.find(result_.id)),
                    {operands.data(), chain_.operands.size()}};
    if (statistics_) at.statistics = memory_of(tensors.find(statistics_->id));
    for (const auto& term : chain_.boundary) {
        std::int32_t value = 0;
        const void* data = data_of(tensors.find(term.tensor.id), kept[next]);
        if (data == nullptr) return abi::invalid_arguments;
        std::memcpy(&value, data, sizeof(value));
        at.causal_offset += term.is_subtracted ? -std::int64_t{value} : value;
    }
    const bool is_complete =
        at.scores != nullptr && at.result != nullptr &&
        (at.statistics != nullptr || !statistics_) &&
        std::find(at.operands.begin(), at.operands.end(), nullptr) == at.operands.end();
    if (!is_complete) return abi::invalid_arguments;
    return guarded([&] { run_rows(rows_, at); });
}

abi::status composite::run_parts(abi::stream stream, const bound_tensors& tensors) const {
    const auto wait = [stream] {
        return real().is_sycl() ? call_real(&real_library::stream_wait, stream) : abi::success;
    };
    auto status = before_ ? before_->execute(stream, tensors) : abi::success;
    if (status == abi::success && before_) status = wait();
    if (status == abi::success && rows_.kernels != nullptr) status = run_chain(tensors);
    if (status == abi::success && after_) status = after_->execute(stream, tensors);
    // The next execution reuses the scratch memory.
    const auto waited = before_ || after_ ? wait() : abi::success;
    return status == abi::success ? waited : status;
}

abi::status composite::execute(const execute_call& call) const {
    if (!call.has_lists() || call.num_inputs < own_inputs_.size() ||
        call.num_outputs < needed_outputs_)
        return abi::invalid_arguments;
    std::unique_ptr<composite_scratch> scratch;
    const auto prepared = guarded([&] { scratch = take_scratch(memory_of(call.scratchpad)); });
    if (prepared != abi::success) return prepared;
    const auto status =
        run_parts(call.stream, bound_tensors(*this, *scratch, call.inputs, call.outputs));
    give_back(std::move(scratch));
    return status;
}

} // namespace maskwise::onednn
