#include "calls.hpp"

#include <string>
#include <thread>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace maskwise::ort {
namespace {

// ONNX Runtime is built without ThreadSanitizer, which does not see how its threads wait for each
// other: these two tell it.
#ifdef __SANITIZE_THREAD__
void hand_over(void* loop_data) {
    __tsan_release(loop_data);
}
void take_over(void* loop_data) {
    __tsan_acquire(loop_data);
}
#else
void hand_over(void*) {}
void take_over(void*) {}
#endif

using loop_body = std::function<void(std::int64_t)>;

void run_part(void* data, std::size_t part) {
    take_over(data);
    (*static_cast<const loop_body*>(data))(static_cast<std::int64_t>(part));
    hand_over(data);
}

} // namespace

input_tensor call::input(std::size_t index) const {
    input_tensor found = optional_input(index);
    if (found.theirs == nullptr) throw error("input " + std::to_string(index) + " is missing");
    return found;
}

input_tensor call::optional_input(std::size_t index) const {
    input_tensor found;
    std::size_t count = 0;
    check(with_.KernelContext_GetInputCount(context_, &count));
    if (index < count) check(with_.KernelContext_GetInput(context_, index, &found.theirs));
    if (found.theirs == nullptr) return found;
    ONNXTensorElementDataType element{};
    const std::int64_t* extents = nullptr;
    std::size_t rank = 0;
    check(with_.GetTensorElementTypeAndShapeDataReference(found.theirs, &element, &extents, &rank));
    found.desc = {type_of(element), dims(std::span(extents, rank))};
    if (found.desc.type != data_type::string) check(with_.GetTensorData(found.theirs, &found.data));
    return found;
}

OrtValue* call::make_output(const dims& extents, std::size_t index) const {
    OrtValue* output = nullptr;
    std::size_t count = 0;
    check(with_.KernelContext_GetOutputCount(context_, &count));
    if (index < count)
        check(with_.KernelContext_GetOutput(context_, index, extents.begin(),
                                            static_cast<std::size_t>(extents.rank()), &output));
    return output;
}

void* call::output_data(const dims& extents, std::size_t index) const {
    void* data = nullptr;
    OrtValue* const output = make_output(extents, index);
    if (output != nullptr) check(with_.GetTensorMutableData(output, &data));
    return data;
}

parallel_loop call::loop(int threads) const {
    return {threads, [at = *this](std::int64_t count, const loop_body& body) {
                void* const data = const_cast<loop_body*>(&body);
                hand_over(data);
                check(at.with_.KernelContext_ParallelFor(at.context_, run_part,
                                                         static_cast<std::size_t>(count), 0, data));
                take_over(data);
            }};
}

int processors() {
    static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return count;
}

} // namespace maskwise::ort
