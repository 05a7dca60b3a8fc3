// The threads of the loaded torch, by C functions that torch exports since 2.10
// (torch/csrc/stable/c/shim.h).
#include "torch_threads.hpp"

#include "torch_library.hpp"

#include <stdexcept>

namespace maskwise::python {
namespace {

using range_body = void (*)(std::int64_t first, std::int64_t last, void* context);

struct torch_functions {
    std::int32_t (*parallel_for)(std::int64_t first, std::int64_t last, std::int64_t grain,
                                 range_body body, void* context) = nullptr;
    std::int32_t (*get_num_threads)(std::uint32_t* count) = nullptr;
};

torch_functions find_functions() {
    torch_functions loaded;
    void* const library = torch_library();
    if (library == nullptr) return loaded;
    find_symbol(library, "torch_parallel_for", loaded.parallel_for);
    find_symbol(library, "torch_get_num_threads", loaded.get_num_threads);
    return loaded;
}

const torch_functions& functions() {
    static const torch_functions loaded = find_functions();
    return loaded;
}

void run_on_torch(std::int64_t count, const std::function<void(std::int64_t)>& body) {
    const auto run_range = [](std::int64_t first, std::int64_t last, void* context) {
        const auto& each = *static_cast<const std::function<void(std::int64_t)>*>(context);
        for (std::int64_t i = first; i < last; ++i) each(i);
    };
    auto* const context = const_cast<std::function<void(std::int64_t)>*>(&body);
    if (functions().parallel_for(0, count, 1, run_range, context) != 0)
        throw std::runtime_error("torch_parallel_for failed");
}

} // namespace

std::optional<parallel_loop> torch_loop() {
    std::uint32_t threads = 0;
    if (functions().parallel_for == nullptr || functions().get_num_threads == nullptr ||
        functions().get_num_threads(&threads) != 0 || threads == 0)
        return std::nullopt;
    return parallel_loop{static_cast<int>(threads), run_on_torch};
}

} // namespace maskwise::python
