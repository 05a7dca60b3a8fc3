#include "onednn/partition/executable.hpp"

#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/tensor_data.hpp"

#include <algorithm>
#include <array>
#include <new>

namespace maskwise::onednn {

const char* name_of(partition_kind kind) {
    return std::array{"select", "attention", "gradients",
                      "composite"}[static_cast<std::size_t>(kind)];
}

executable_parts::executable_parts(partition_kind parts_kind, const compile_request& request)
    : kind(parts_kind), engine(request.engine), inputs(request.inputs), outputs(request.outputs) {}

bool executable_parts::makes(std::size_t id) const {
    return std::ranges::find(output_ids, id) != output_ids.end();
}

place executable_parts::input_at(std::size_t position) {
    needed_inputs = std::max(needed_inputs, position + 1);
    return {place::list::inputs, position};
}

place executable_parts::output_at(std::size_t position) {
    needed_outputs = std::max(needed_outputs, position + 1);
    return {place::list::outputs, position};
}

executable::scratch::~scratch() {
    for (abi::tensor tensor : tensors) real_tensor_destroy(tensor);
}

std::size_t executable::scratch_bytes() const {
    return parts_.inner_bytes == 0 ? 0 : parts_.inner_bytes + scratch_alignment;
}

std::string executable::describe() const {
    std::string text;
    for (const auto& segment : parts_.segments) {
        const std::string plan = segment->describe();
        text += (text.empty() || plan.empty() ? "" : "; ") + plan;
    }
    return text.empty() ? "oneDNN operator by operator" : text;
}

// Returns scratch in `client_memory`, or cached or new scratch if `client_memory` is null.
std::unique_ptr<executable::scratch> executable::take_scratch(void* client_memory) const {
    if (auto cached = client_memory ? nullptr : scratch_.take()) return cached;
    auto taken = std::make_unique<scratch>();
    if (client_memory == nullptr)
        taken->memory = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes());
    std::byte* const first =
        first_aligned(client_memory ? static_cast<std::byte*>(client_memory) : taken->memory.get());
    taken->tensors.reserve(parts_.inner.size()); // push_back must not throw, or a handle leaks
    for (const auto& value : parts_.inner) {
        abi::tensor tensor = nullptr;
        const auto described = to_abi(value.tensor);
        const auto status =
            real_tensor_create(&tensor, &described, parts_.engine, first + value.offset_bytes);
        if (status != abi::success) throw std::bad_alloc();
        taken->tensors.push_back(tensor);
    }
    return taken;
}

// Waits after a segment that queues work, because segments read each other's results, and the next
// execution reuses the scratch memory.
abi::status executable::run_segments(const execution& tensors) const {
    for (const auto& segment : parts_.segments) {
        auto status = segment->run(tensors);
        if (segment->is_queued()) {
            const auto waited = call_real(&real_library::stream_wait, tensors.call.stream);
            if (status == abi::success) status = waited;
        }
        if (status != abi::success) return status;
    }
    return abi::success;
}

abi::status executable::execute(const execute_call& call) const {
    if (call.inputs == nullptr || call.outputs == nullptr ||
        call.num_inputs < parts_.needed_inputs || call.num_outputs < parts_.needed_outputs)
        return abi::invalid_arguments;
    if (parts_.inner.empty()) return run_segments({call, {}});
    std::unique_ptr<scratch> taken;
    const auto prepared = guarded([&] { taken = take_scratch(memory_of(call.scratchpad)); });
    if (prepared != abi::success) return prepared;
    const auto status = run_segments({call, taken->tensors});
    if (taken->memory) scratch_.give_back(std::move(taken));
    return status;
}

} // namespace maskwise::onednn
