#include "loop.hpp"

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

void run_part(void* data, std::size_t part) {
    using loop_body = std::function<void(std::int64_t)>;
    take_over(data);
    (*static_cast<const loop_body*>(data))(static_cast<std::int64_t>(part));
    hand_over(data);
}

} // namespace

int processors() {
    static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return count;
}

parallel_loop loop_of(const runtime& with, const abi::kernel_context* context, int threads) {
    struct caller {
        const runtime& with;
        const abi::kernel_context* context;
    };
    return {threads, [at = caller{with, context}](std::int64_t count, const auto& body) {
                void* const data = const_cast<std::function<void(std::int64_t)>*>(&body);
                hand_over(data);
                check(at.with.KernelContext_ParallelFor(at.context, run_part,
                                                        static_cast<std::size_t>(count), 0, data));
                take_over(data);
            }};
}

} // namespace maskwise::ort
