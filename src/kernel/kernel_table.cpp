#include "kernel/kernel_table.hpp"

#include <atomic>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace maskwise {
namespace {

char letter_of(column_class in_columns) {
    return in_columns == column_class::unit ? 'u' : 'z';
}

} // namespace

const kernel_table& kernel_table_for(isa target) {
    for (const kernel_table* table : kernel_tables())
        if (table->target == target) return *table;
    throw argument_error("no kernels for instruction set " + std::string(to_string(target)));
}

std::string to_string(const select_key& key) {
    std::string text = "select_x" + std::to_string(key.width_bytes * 8) + '_';
    for (const column_class in_columns : {key.cond, key.src_0, key.src_1})
        text += letter_of(in_columns);
    return text + (key.store == store_policy::stream ? "_stream" : "_plain");
}

std::string to_string(const pick_key& key) {
    return "pick_x" + std::to_string(key.width_bytes * 8) + '_' + letter_of(key.cond);
}

std::string to_string(const pack_key& key) {
    return std::string(to_string(key.kind)) + '_' + std::to_string(key.unit_bytes);
}

std::string_view to_string(access_kind kind) {
    static constexpr std::string_view names[] = {"direct", "repeat", "gather",   "scatter",
                                                 "step",   "splat",  "transpose"};
    return names[static_cast<std::size_t>(kind)];
}

void finish_streaming() {
#ifdef __SSE2__
    _mm_sfence();
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

} // namespace maskwise
