#include "rotary_positions.hpp"

#include "attention_checks.hpp"

#include "exec/parts.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace maskwise::ort {
namespace {

// ONNX Runtime looks at the first two dimensions, which may be longer than what is read, and reads
// elements one after the other, whatever dimensions follow.
void require_leading(std::string_view name, const dims& actual, const dims& least) {
    bool fits = actual.rank() >= 2 && actual[0] >= least[0] && actual[1] >= least[1];
    for (int d = 2; d < actual.rank(); ++d) fits = fits && actual[d] > 0;
    if (!fits)
        refuse_shape(std::string(name) + " is " + to_string(actual) + ", expected at least " +
                     to_string(least));
}

void check_caches(const rotary_call& of, const dims& cosines, const dims& sines) {
    constexpr std::int64_t unit = 8; // ONNX Runtime takes no other numbers of pairs
    const std::int64_t depth = of.queries[3];
    require_leading("cos_cache", cosines, {of.longest, 0});
    require_leading("sin_cache", sines, {of.longest, cosines[1]});
    if (sines[1] != cosines[1]) expect_shape("sin_cache", sines, cosines);
    if (depth % (2 * unit) != 0 || cosines[1] % unit != 0 || cosines[1] > depth / 2)
        refuse_shape("cos_cache is " + to_string(cosines) + " with heads of " +
                     std::to_string(depth) + ": its width is a multiple of " +
                     std::to_string(unit) + ", half a head at most, a head one of " +
                     std::to_string(2 * unit));
}

[[noreturn]] void refuse_position(std::int64_t position, std::int64_t rows, std::int64_t limit) {
    refuse(std::to_string(rows) + " rows from position " + std::to_string(position) + " on, of " +
           std::to_string(limit) + " in cos_cache and sin_cache");
}

// A prompt begins where its first sequence does, and counts from there.
void read_given(rotary_positions& to, const rotary_call& of, const operand& given) {
    const dims& extents = *given.extents;
    const std::int64_t sequences = of.queries[0];
    require_leading("position_ids", extents, {sequences, to.rows});
    if (extents[0] != sequences) expect_shape("position_ids", extents, {sequences, to.rows});
    const auto* const numbers = static_cast<const std::int64_t*>(given.data);
    if (of.begins)
        to.first.assign(static_cast<std::size_t>(sequences), numbers[0]);
    else
        to.each = numbers;
}

void check_positions(const rotary_positions& of, std::int64_t sequences, std::int64_t limit) {
    const auto check = [&](std::int64_t position, std::int64_t rows) {
        if (position < 0 || position > limit - rows) refuse_position(position, rows, limit);
    };
    if (of.each == nullptr)
        for (const std::int64_t first : of.first) check(first, of.rows);
    else
        for (std::int64_t i = 0; i < sequences * of.rows; ++i) check(of.each[i], 1);
}

} // namespace

rotary_positions read_rotary_positions(const rotary_call& of) {
    const operand &cosines = of.in[role::cosines], &sines = of.in[role::sines];
    check_caches(of, *cosines.extents, *sines.extents);
    rotary_positions found{.cosines = static_cast<const float*>(cosines.data),
                           .sines = static_cast<const float*>(sines.data),
                           .pairs = (*cosines.extents)[1],
                           .neighbours = of.neighbours,
                           .rows = of.queries[2]};
    if (const operand& given = of.in[role::positions]; given.is_given)
        read_given(found, of, given);
    else
        found.first = of.positions;
    check_positions(found, of.queries[0], std::min((*cosines.extents)[0], (*sines.extents)[0]));
    return found;
}

void rotate_row(const rotary_positions& by, std::int64_t position, const float* from, float* to,
                std::int64_t depth) {
    const float* const cosines = by.cosines + position * by.pairs;
    const float* const sines = by.sines + position * by.pairs;
    const std::int64_t pairs = by.pairs, rest = depth - 2 * pairs;
    const auto turn = [=](std::int64_t pair, std::int64_t one, std::int64_t other) {
        const float x = from[one], y = from[other];
        to[one] = x * cosines[pair] - y * sines[pair];
        to[other] = y * cosines[pair] + x * sines[pair];
    };
    // Loops of their own, so that the compiler finds vectors in both.
    if (by.neighbours)
        for (std::int64_t i = 0; i < pairs; ++i) turn(i, 2 * i, 2 * i + 1);
    else
        for (std::int64_t i = 0; i < pairs; ++i) turn(i, i, i + pairs);
    if (rest > 0)
        std::memcpy(to + 2 * pairs, from + 2 * pairs,
                    static_cast<std::size_t>(rest) * sizeof(float));
}

void rotate(const rotary_positions& by, const tensor_desc& of, const void* from, float* to,
            const parallel_loop& loop) {
    const dims &extents = of.extents, &strides = of.strides_bytes;
    const std::int64_t heads = extents[1], depth = extents[3];
    const auto one = [&](std::int64_t part) {
        const std::int64_t sequence = part / by.rows, row = part % by.rows;
        const std::byte* at =
            static_cast<const std::byte*>(from) + sequence * strides[0] + row * strides[2];
        for (std::int64_t head = 0; head < heads; ++head)
            rotate_row(by, by.position(sequence, row),
                       reinterpret_cast<const float*>(at + head * strides[1]),
                       to + (part * heads + head) * depth, depth);
    };
    const std::int64_t parts = extents[0] * by.rows;
    const std::int64_t bytes = parts * heads * depth * std::int64_t{sizeof(float)};
    const parallel_loop alone = calling_thread();
    (bytes < host_parallel_from_bytes ? alone : loop).run(parts, one);
}

} // namespace maskwise::ort
