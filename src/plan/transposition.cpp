#include "plan/transposition.hpp"

#include "kernel/select/contract.hpp"

#include <algorithm>
#include <array>

namespace maskwise {
namespace {

// Groups are `run` of the levels, which lie side by side in the operand; items are all levels
// inside the innermost of them; what is left are blocks.
transposition transpose_along(const levels& from, const std::vector<int>& run) {
    transposition found;
    found.items = *std::min_element(run.begin(), run.end());
    found.groups = run;
    for (int i = found.items; i < from.count; ++i)
        if (std::find(run.begin(), run.end(), i) == run.end()) found.blocks.push_back(i);
    return found;
}

// Whether packing by blocks pays. Few items or few groups do where the others are many: planes and
// pixels.
bool pays(const levels& from, const transposition& t, std::int64_t width) {
    const std::int64_t few = width == 1 ? 8 : 4;
    constexpr std::int64_t many = 32;
    const std::int64_t groups = product(from, t.groups), items = product(from, 0, t.items);
    const bool pixels = from[0].stride_bytes == groups * width && from[0].extent == items;
    return (groups >= few && items >= few) || groups >= many || (pixels && items >= many);
}

// Whether lines of the first items meet in a set of L1 that has fewer ways.
bool crowd(std::span<const std::int32_t> offsets, const cache_facts& caches) {
    const std::int64_t sets = caches.l1_bytes / (line_bytes * caches.l1_ways);
    std::array<std::int64_t, max_block_items> lines;
    std::size_t count = 0;
    for (const std::int32_t offset : offsets) {
        const std::int64_t line = offset / line_bytes;
        const auto known = std::span(lines).first(count);
        if (std::ranges::find(known, line) != known.end()) continue;
        const auto meets = [&](std::int64_t other) { return (line - other) % sets == 0; };
        if (std::ranges::count_if(known, meets) >= caches.l1_ways) return true;
        lines[count++] = line;
    }
    return false;
}

} // namespace

std::int64_t items_at_once(std::span<const std::int32_t> offsets, const cache_facts& caches) {
    constexpr std::size_t least = 4;
    std::size_t items = max_block_items;
    while (items > least && crowd(offsets.first(std::min(items, offsets.size())), caches))
        items /= 2;
    return static_cast<std::int64_t>(items);
}

std::int64_t product(const levels& from, std::span<const int> numbers) {
    std::int64_t result = 1;
    for (const int i : numbers) result *= from[i].extent;
    return result;
}

transposition choose_transposition(const levels& from, std::int64_t width) {
    const auto used = [&](std::int64_t count) { return std::min(count, 16 / width); };
    transposition best;
    std::int64_t most_used = 0;
    std::vector<int> run;
    std::int64_t run_bytes = width;
    for (;;) {
        int next = 1;
        while (next < from.count &&
               (from[next].stride_bytes != run_bytes || from[next].extent == 1))
            ++next;
        if (next == from.count) return best;
        run.push_back(next);
        run_bytes *= from[next].extent;
        transposition with = transpose_along(from, run);
        const std::int64_t elements =
            used(product(from, with.groups)) * used(product(from, 0, with.items));
        if (elements <= most_used || !pays(from, with, width)) continue;
        best = with;
        most_used = elements;
    }
}

} // namespace maskwise
