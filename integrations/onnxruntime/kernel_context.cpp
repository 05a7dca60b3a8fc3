#include "kernel_context.hpp"

#include <string>
#include <thread>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace maskwise::ort {
namespace {

// ONNX Runtime is built without ThreadSanitizer. So ThreadSanitizer does not see how ONNX Runtime's
// threads synchronize, unless these two functions tell it.
#ifdef __SANITIZE_THREAD__
void tsan_release(void* loop_data) {
    __tsan_release(loop_data);
}
void tsan_acquire(void* loop_data) {
    __tsan_acquire(loop_data);
}
#else
void tsan_release(void*) {}
void tsan_acquire(void*) {}
#endif

using loop_body = std::function<void(std::int64_t)>;

void run_part(void* data, std::size_t part) {
    tsan_acquire(data);
    (*static_cast<const loop_body*>(data))(static_cast<std::int64_t>(part));
    tsan_release(data);
}

} // namespace

input_tensor kernel_context::input(std::size_t index) const {
    input_tensor tensor = optional_input(index);
    if (tensor.value == nullptr) throw error("input " + std::to_string(index) + " is missing");
    return tensor;
}

input_tensor kernel_context::optional_input(std::size_t index) const {
    input_tensor tensor;
    std::size_t count = 0;
    check(api_.KernelContext_GetInputCount(context_, &count));
    if (index < count) check(api_.KernelContext_GetInput(context_, index, &tensor.value));
    if (tensor.value == nullptr) return tensor;
    ONNXTensorElementDataType element{};
    const std::int64_t* extents = nullptr;
    std::size_t rank = 0;
    check(api_.GetTensorElementTypeAndShapeDataReference(tensor.value, &element, &extents, &rank));
    tensor.desc = {type_of(element), dims(std::span(extents, rank))};
    if (tensor.desc.type != data_type::string)
        check(api_.GetTensorData(tensor.value, &tensor.data));
    return tensor;
}

OrtValue* kernel_context::make_output(const dims& extents, std::size_t index) const {
    OrtValue* output = nullptr;
    std::size_t count = 0;
    check(api_.KernelContext_GetOutputCount(context_, &count));
    if (index < count)
        check(api_.KernelContext_GetOutput(context_, index, extents.begin(),
                                           static_cast<std::size_t>(extents.rank()), &output));
    return output;
}

void* kernel_context::output_data(const dims& extents, std::size_t index) const {
    void* data = nullptr;
    OrtValue* const output = make_output(extents, index);
    if (output != nullptr) check(api_.GetTensorMutableData(output, &data));
    return data;
}

parallel_loop kernel_context::loop(int threads) const {
    return {threads, [context = *this](std::int64_t count, const loop_body& body) {
                void* const data = const_cast<loop_body*>(&body);
                tsan_release(data);
                check(context.api_.KernelContext_ParallelFor(
                    context.context_, run_part, static_cast<std::size_t>(count), 0, data));
                tsan_acquire(data);
            }};
}

int processors() {
    static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return count;
}

} // namespace maskwise::ort
