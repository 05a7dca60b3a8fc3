#include "plan/transposition.hpp"

#include "kernel/select/contract.hpp"

#include <algorithm>
#include <array>

namespace maskwise {
namespace {

// Groups are the levels `run`, along which the operand is contiguous. Items are all levels inside
// the innermost group. The other levels are blocks.
transposition transpose_along(const levels& loops, const std::vector<int>& run) {
    transposition result;
    result.items = *std::min_element(run.begin(), run.end());
    result.groups = run;
    for (int i = result.items; i < loops.count; ++i)
        if (std::find(run.begin(), run.end(), i) == run.end()) result.blocks.push_back(i);
    return result;
}

// Whether packing by blocks pays: with a few groups and a few items, with many groups, or with many
// items that are adjacent in memory (pixels).
bool pays_to_transpose(const levels& loops, const transposition& t, std::int64_t width) {
    const std::int64_t few = width == 1 ? 8 : 4;
    constexpr std::int64_t many = 32;
    const std::int64_t groups = product(loops, t.groups), items = product(loops, 0, t.items);
    const bool pixels = loops[0].stride_bytes == groups * width && loops[0].extent == items;
    return (groups >= few && items >= few) || groups >= many || (pixels && items >= many);
}

// Whether more lines of these items map to one L1 set than the set has ways.
bool exceeds_l1_ways(std::span<const std::int32_t> offsets, const cache_facts& caches) {
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
    while (items > least && exceeds_l1_ways(offsets.first(std::min(items, offsets.size())), caches))
        items /= 2;
    return static_cast<std::int64_t>(items);
}

std::int64_t product(const levels& loops, std::span<const int> numbers) {
    std::int64_t result = 1;
    for (const int i : numbers) result *= loops[i].extent;
    return result;
}

transposition choose_transposition(const levels& loops, std::int64_t width) {
    const auto used = [&](std::int64_t count) { return std::min(count, 16 / width); };
    transposition best;
    std::int64_t most_used = 0;
    std::vector<int> run;
    std::int64_t run_bytes = width;
    for (;;) {
        int next = 1;
        while (next < loops.count &&
               (loops[next].stride_bytes != run_bytes || loops[next].extent == 1))
            ++next;
        if (next == loops.count) return best;
        run.push_back(next);
        run_bytes *= loops[next].extent;
        transposition candidate = transpose_along(loops, run);
        const std::int64_t elements =
            used(product(loops, candidate.groups)) * used(product(loops, 0, candidate.items));
        if (elements <= most_used || !pays_to_transpose(loops, candidate, width)) continue;
        best = candidate;
        most_used = elements;
    }
}

} // namespace maskwise
