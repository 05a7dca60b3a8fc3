#include "loop.hpp"

#include <thread>

namespace maskwise::ort {

// Nothing says how many threads a session has: of those that the machine has more, one takes
// several parts.
parallel_loop loop_of(const runtime& with, const abi::kernel_context* context) {
    static const auto processors = static_cast<int>(std::thread::hardware_concurrency());
    struct caller {
        const runtime& with;
        const abi::kernel_context* context;
    };
    return {std::max(1, processors),
            [at = caller{with, context}](std::int64_t count, const auto& body) {
                const auto call = [](void* data, std::size_t part) {
                    using loop_body = std::function<void(std::int64_t)>;
                    (*static_cast<const loop_body*>(data))(static_cast<std::int64_t>(part));
                };
                void* const data = const_cast<std::function<void(std::int64_t)>*>(&body);
                check(at.with.KernelContext_ParallelFor(at.context, call,
                                                        static_cast<std::size_t>(count), 0, data));
            }};
}

} // namespace maskwise::ort
