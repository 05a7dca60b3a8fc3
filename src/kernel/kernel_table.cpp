#include "kernel/kernel_table.hpp"

#include "base/error.hpp"

#include <atomic>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace maskwise {
namespace {

std::string_view to_string(pack_kind kind) {
    switch (kind) {
    case pack_kind::gather:
        return "gather";
    case pack_kind::scatter:
        return "scatter";
    case pack_kind::step:
        return "step";
    case pack_kind::splat:
        return "splat";
    case pack_kind::transpose:
        return "transpose";
    }
    return "?";
}

char letter_of(column_class in_columns) {
    return in_columns == column_class::unit ? 'u' : 'z';
}

template <class Entry, class Key>
const Entry& find(std::span<const Entry> entries, const Key& key) {
    for (const Entry& entry : entries)
        if (entry.key == key) return entry;
    throw invalid_argument("no kernel " + to_string(key));
}

} // namespace

const kernel_table& kernel_table_for(isa target) {
    for (const kernel_table* table : kernel_tables())
        if (table->target == target) return *table;
    throw invalid_argument("no kernels for instruction set " + std::string(to_string(target)));
}

const select_kernel& find_select(const kernel_table& table, const select_key& key) {
    return find(table.selects, key);
}

const pick_kernel& find_pick(const kernel_table& table, const pick_key& key) {
    return find(table.picks, key);
}

const pack_kernel& find_pack(const kernel_table& table, const pack_key& key) {
    return find(table.packs, key);
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

void finish_streaming() {
#ifdef __SSE2__
    _mm_sfence();
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

} // namespace maskwise
