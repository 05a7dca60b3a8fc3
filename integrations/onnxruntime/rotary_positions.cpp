#include "rotary_positions.hpp"

#include "attention_checks.hpp"

#include "exec/parts.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace maskwise::ort {
namespace {

// ONNX Runtime reads the first elements in memory order, so the first two dimensions may be larger
// than needed, and further dimensions may have any extent but 0.
void require_leading(std::string_view name, const dims& actual, const dims& min_elements) {
    bool fits = actual.rank() >= 2 && actual[0] >= min_elements[0] && actual[1] >= min_elements[1];
    for (int d = 2; d < actual.rank(); ++d) fits = fits && actual[d] > 0;
    if (!fits)
        refuse_shape(std::string(name) + " is " + to_string(actual) + ", expected at least " +
                     to_string(min_elements));
}

void check_caches(const rotary_call& call, const dims& cosines, const dims& sines) {
    constexpr std::int64_t unit = 8; // ONNX Runtime supports only widths that are multiples of 8
    const std::int64_t depth = call.queries[3];
    require_leading("cos_cache", cosines, {call.longest, 0});
    require_leading("sin_cache", sines, {call.longest, cosines[1]});
    if (sines[1] != cosines[1]) expect_shape("sin_cache", sines, cosines);
    if (depth % (2 * unit) != 0 || cosines[1] % unit != 0 || cosines[1] > depth / 2)
        refuse_shape("cos_cache is " + to_string(cosines) + " with a depth of " +
                     std::to_string(depth) + ", expected a width that is a multiple of " +
                     std::to_string(unit) +
                     " and at most half the depth, and a depth that is a multiple of " +
                     std::to_string(2 * unit));
}

[[noreturn]] void refuse_position(std::int64_t position, std::int64_t rows, std::int64_t limit) {
    refuse(std::to_string(rows) + " rows from position " + std::to_string(position) +
           " on are not within the " + std::to_string(limit) +
           " positions of cos_cache and sin_cache");
}

// In a prompt, only the first position ID is read: the position of row 0 of every sequence.
void set_positions(rotary_positions& rotary, const rotary_call& call, const operand& position_ids) {
    const dims& extents = *position_ids.extents;
    const std::int64_t sequences = call.queries[0];
    require_leading("position_ids", extents, {sequences, rotary.rows});
    if (extents[0] != sequences) expect_shape("position_ids", extents, {sequences, rotary.rows});
    const auto* const numbers = static_cast<const std::int64_t*>(position_ids.data);
    if (call.begins)
        rotary.first_positions.assign(static_cast<std::size_t>(sequences), numbers[0]);
    else
        rotary.row_positions = numbers;
}

void check_positions(const rotary_positions& rotary, std::int64_t sequences, std::int64_t limit) {
    const auto check = [&](std::int64_t position, std::int64_t rows) {
        if (position < 0 || position > limit - rows) refuse_position(position, rows, limit);
    };
    if (rotary.row_positions == nullptr)
        for (const std::int64_t first : rotary.first_positions) check(first, rotary.rows);
    else
        for (std::int64_t i = 0; i < sequences * rotary.rows; ++i)
            check(rotary.row_positions[i], 1);
}

} // namespace

rotary_positions read_rotary_positions(const rotary_call& call) {
    const operand &cosines = call.inputs[role::cosines], &sines = call.inputs[role::sines];
    check_caches(call, *cosines.extents, *sines.extents);
    rotary_positions rotary{.cosines = static_cast<const float*>(cosines.data),
                            .sines = static_cast<const float*>(sines.data),
                            .pairs = (*cosines.extents)[1],
                            .interleaved = call.interleaved,
                            .rows = call.queries[2]};
    if (const operand& position_ids = call.inputs[role::positions]; position_ids.is_given)
        set_positions(rotary, call, position_ids);
    else
        rotary.first_positions = call.positions;
    check_positions(rotary, call.queries[0], std::min((*cosines.extents)[0], (*sines.extents)[0]));
    return rotary;
}

void rotate_row(const rotary_positions& rotary, std::int64_t position, const float* source,
                float* target, std::int64_t depth) {
    const float* const cosines = rotary.cosines + position * rotary.pairs;
    const float* const sines = rotary.sines + position * rotary.pairs;
    const std::int64_t pairs = rotary.pairs, rest = depth - 2 * pairs;
    const auto rotate_pair = [=](std::int64_t pair, std::int64_t first, std::int64_t second) {
        const float x = source[first], y = source[second];
        target[first] = x * cosines[pair] - y * sines[pair];
        target[second] = y * cosines[pair] + x * sines[pair];
    };
    // Two loops, so that the compiler can vectorize both.
    if (rotary.interleaved)
        for (std::int64_t i = 0; i < pairs; ++i) rotate_pair(i, 2 * i, 2 * i + 1);
    else
        for (std::int64_t i = 0; i < pairs; ++i) rotate_pair(i, i, i + pairs);
    if (rest > 0)
        std::memcpy(target + 2 * pairs, source + 2 * pairs,
                    static_cast<std::size_t>(rest) * sizeof(float));
}

void rotate(const rotary_positions& rotary, const tensor_desc& queries, const void* source,
            float* target, const parallel_loop& loop) {
    const dims &extents = queries.extents, &strides = queries.strides_bytes;
    const std::int64_t heads = extents[1], depth = extents[3];
    const auto rotate_heads = [&](std::int64_t part) {
        const std::int64_t sequence = part / rotary.rows, row = part % rotary.rows;
        const std::byte* first =
            static_cast<const std::byte*>(source) + sequence * strides[0] + row * strides[2];
        for (std::int64_t head = 0; head < heads; ++head)
            rotate_row(rotary, rotary.position(sequence, row),
                       reinterpret_cast<const float*>(first + head * strides[1]),
                       target + (part * heads + head) * depth, depth);
    };
    const std::int64_t parts = extents[0] * rotary.rows;
    const std::int64_t bytes = parts * heads * depth * std::int64_t{sizeof(float)};
    const parallel_loop alone = calling_thread();
    (bytes < host_parallel_from_bytes ? alone : loop).run(parts, rotate_heads);
}

} // namespace maskwise::ort
