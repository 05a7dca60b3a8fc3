#include "attention/cache_pages.hpp"

#include "attention/row_spans.hpp"

#include <cstring>

namespace maskwise {

std::int64_t page_number(const tensor_desc& table, const void* first, std::int64_t sequence,
                         std::int64_t page) {
    const dims& strides = table.strides_bytes;
    std::int32_t number = 0;
    std::memcpy(&number,
                static_cast<const std::byte*>(first) + sequence * strides[0] + page * strides[1],
                sizeof number);
    return number;
}

void require_pages(const tile_plan& plan, const attention_operands& addresses) {
    const tensor_desc& table = plan.desc.page_table;
    if (table.type == data_type::undef) return;
    const std::int64_t page_keys = plan.key.page_keys;
    for (std::int64_t s = 0; s < table.extents[0]; ++s) {
        const std::int64_t keys = length_of(addresses.rules, s, plan.keys);
        for (std::int64_t first = 0; first < keys; first += page_keys) {
            const std::int64_t page =
                page_number(table, addresses.page_table, s, first / page_keys);
            if (page >= 0 && page < plan.cache_pages) continue;
            throw argument_error("attention: page_table: page " + std::to_string(page) +
                                 " (sequence " + std::to_string(s) + ", keys from " +
                                 std::to_string(first) + ") is not in the cache of " +
                                 std::to_string(plan.cache_pages) + " pages");
        }
    }
}

} // namespace maskwise
