#include "attention_work.hpp"

#include "attention_checks.hpp"

#include "exec/parts.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>

namespace maskwise::ort {
namespace {

const std::byte* bytes(const void* at) {
    return static_cast<const std::byte*>(at);
}

// Rows of one head; none where there are none, which may have no address.
void copy_rows(std::byte* to, const void* from, std::int64_t offset, std::int64_t rows,
               std::int64_t row_bytes, std::int64_t stride) {
    if (rows == 0) return;
    const std::byte* at = bytes(from) + offset;
    if (stride == row_bytes) {
        std::memcpy(to, at, static_cast<std::size_t>(rows * row_bytes));
        return;
    }
    for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(to + row * row_bytes, at + row * stride, static_cast<std::size_t>(row_bytes));
}

// Keys, or values.
struct cached_state {
    const cache_layout& cache;
    tensor_desc added; // {batch, heads, rows, depth}
    const void* added_at;
    const void* past_at;
    void* at;                                 // may be past_at
    const rotary_positions* rotary = nullptr; // not of values

    std::int64_t heads() const { return added.extents[1]; }
    std::int64_t parts() const { return added.extents[0] * heads(); }
    std::int64_t row_bytes() const { return added.extents[3] * added.strides_bytes[3]; }
    bool is_in_place() const { return past_at == at; }
    std::int64_t written_bytes() const {
        return parts() * row_bytes() * (is_in_place() ? added.extents[2] : cache.capacity);
    }
};

void rotate_rows(const cached_state& state, std::int64_t sequence, std::byte* to,
                 std::int64_t offset) {
    const std::int64_t depth = state.added.extents[3];
    for (std::int64_t row = 0; row < state.added.extents[2]; ++row)
        rotate_row(*state.rotary, state.rotary->position(sequence, row),
                   reinterpret_cast<const float*>(bytes(state.added_at) + offset +
                                                  row * state.added.strides_bytes[2]),
                   reinterpret_cast<float*>(to) + row * depth, depth);
}

void join_head(const cached_state& state, std::int64_t part) {
    const dims& strides = state.added.strides_bytes;
    const std::int64_t sequence = part / state.heads(), head = part % state.heads();
    const std::int64_t row_bytes = state.row_bytes(), added = state.added.extents[2];
    const std::int64_t past = state.cache.past_rows[static_cast<std::size_t>(sequence)];
    const std::int64_t rest = state.cache.capacity - past - added;
    auto* const to = static_cast<std::byte*>(state.at) + part * state.cache.capacity * row_bytes;
    if (!state.is_in_place())
        copy_rows(to, state.past_at, part * state.cache.past_capacity * row_bytes, past, row_bytes,
                  row_bytes);
    const std::int64_t offset = sequence * strides[0] + head * strides[1];
    if (state.rotary != nullptr)
        rotate_rows(state, sequence, to + past * row_bytes, offset);
    else
        copy_rows(to + past * row_bytes, state.added_at, offset, added, row_bytes, strides[2]);
    if (!state.is_in_place() && rest > 0)
        std::memset(to + (past + added) * row_bytes, 0, static_cast<std::size_t>(rest * row_bytes));
}

void join(std::span<const cached_state> states, const parallel_loop& loop) {
    std::int64_t bytes = 0, parts = 0;
    for (const cached_state& state : states) {
        bytes += state.written_bytes();
        parts += state.parts();
    }
    const auto one = [&](std::int64_t part) {
        const cached_state* state = states.data();
        for (; part >= state->parts(); ++state) part -= state->parts();
        join_head(*state, part);
    };
    const parallel_loop alone = calling_thread();
    (bytes < host_parallel_from_bytes ? alone : loop).run(parts, one);
}

// The row of a mask that broadcasts from the right.
const std::byte* row_of_mask(const tensor_desc& mask, const void* at, const dims& place) {
    const dims strides = with_strides(mask).strides_bytes;
    const std::byte* found = bytes(at);
    const int rank = mask.extents.rank();
    for (int d = 2; d <= rank; ++d)
        if (mask.extents[rank - d] != 1) found += place[4 - d] * strides[rank - d];
    return found;
}

bool are_lowest(const std::byte* row, data_type type, std::int64_t count) {
    const auto all = [&](const auto* first, const auto& is_lowest) {
        return std::all_of(first, first + count, is_lowest);
    };
    if (type == data_type::f32)
        return all(reinterpret_cast<const float*>(row),
                   [](float one) { return one <= std::numeric_limits<float>::lowest(); });
    constexpr std::uint16_t lowest = 0xFBFF, infinite = 0xFC00; // negative both
    return all(reinterpret_cast<const std::uint16_t*>(row),
               [](std::uint16_t one) { return one == lowest || one == infinite; });
}

std::int64_t one_of(const std::vector<std::int64_t>& numbers, std::int64_t index,
                    std::int64_t otherwise) {
    if (numbers.empty()) return otherwise;
    return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(index)];
}

// Keys that the rules leave to a row begin with the first.
std::int64_t keys_of(const attention_work& work, std::int64_t sequence, std::int64_t row) {
    const std::int64_t all = one_of(work.rules.lengths, sequence, work.desc.key.extents[2]);
    if (!work.rules.causal) return all;
    return std::clamp<std::int64_t>(row + one_of(work.rules.offsets, sequence, 0) + 1, 0, all);
}

// No row without such a bias has a statistic that low.
void clear_lowest_rows(const attention_work& work, const std::vector<float>& statistics) {
    const tensor_desc &bias = work.desc.bias, &dst = work.desc.dst;
    const float low = bias.type == data_type::f32 ? -1e30F : -32752.0F;
    const std::int64_t row_bytes = dst.extents[3] * dst.strides_bytes[3];
    const std::int64_t columns = bias.extents.end()[-1];
    std::size_t at = 0;
    for (std::int64_t b = 0; b < dst.extents[0]; ++b)
        for (std::int64_t h = 0; h < dst.extents[1]; ++h)
            for (std::int64_t row = 0; row < dst.extents[2]; ++row) {
                if (statistics[at++] > low) continue; // NaN does not
                const std::byte* const mask = row_of_mask(bias, work.at.bias, {b, h, row});
                if (are_lowest(mask, bias.type, std::min(columns, keys_of(work, b, row))))
                    std::memset(static_cast<std::byte*>(work.at.dst) + b * dst.strides_bytes[0] +
                                    h * dst.strides_bytes[1] + row * dst.strides_bytes[2],
                                0, static_cast<std::size_t>(row_bytes));
            }
}

void execute(const attention_desc& desc, const attention_operands& at, recent_attentions& plans,
             const parallel_loop& loop) {
    const dims &query = desc.query.extents, &value = desc.value.extents;
    double products = static_cast<double>(query[3] + value[3]);
    for (const std::int64_t extent : {query[0], query[1], query[2], value[2]})
        products *= static_cast<double>(extent);
    const parallel_loop alone = calling_thread();
    plans.find(desc, [&] { return compile(desc); })
        .execute(at, products < operator_parallel_from_products ? alone : loop);
}

tensor_desc last_row(tensor_desc of, const void*& at) {
    std::int64_t& rows = of.extents[2];
    if (rows != 1) at = bytes(at) + (rows - 1) * of.strides_bytes[2];
    rows = 1;
    return of;
}

void execute_last_row(attention_desc desc, attention_operands at, recent_attentions& plans,
                      const parallel_loop& loop) {
    const void* dst = at.dst;
    desc.query = last_row(desc.query, at.query);
    desc.dst = last_row(desc.dst, dst);
    if (desc.bias.type != data_type::undef && desc.bias.extents.end()[-2] != 1)
        desc.bias = last_row(with_strides(desc.bias), at.bias);
    at.dst = const_cast<void*>(dst);
    mask_rules rules = *at.rules;
    rules.causal = false;
    at.rules = &rules;
    execute(desc, at, plans, loop);
}

} // namespace

void keep_for_next(attention_work& work, const call& at, const attention_inputs& in,
                   const cache_layout& cache, const parallel_loop& loop) {
    std::vector<cached_state> states;
    std::int64_t past = 0; // of the longest
    for (const std::int64_t rows : cache.past_rows) past = std::max(past, rows);
    const auto make = [&](std::size_t output, tensor_desc& used, const void*& used_at, role past_of,
                          const rotary_positions* rotary) {
        tensor_desc all{used.type, used.extents};
        all.extents[2] = cache.capacity;
        void* const made = at.output_data(all.extents, output);
        if (made != nullptr)
            states.push_back({cache, used, used_at, in[past_of].data, made, rotary});
        if (past == 0 && rotary == nullptr) return;
        if (made == nullptr) refuse(std::to_string(past) + " earlier keys and no result for all");
        if (past > 0) used.extents = all.extents;
        used.strides_bytes = with_strides(all).strides_bytes;
        used_at = made;
    };
    make(1, work.desc.key, work.at.key, role::past_key, work.rotary ? &*work.rotary : nullptr);
    make(2, work.desc.value, work.at.value, role::past_value, nullptr);
    join(states, loop);
}

namespace {

void run_rotated(const attention_work& work, attention_desc desc, attention_operands at,
                 recent_attentions& plans, const parallel_loop& loop) {
    std::vector<float> statistics;
    if (work.lowest_masks) {
        const dims& dst = desc.dst.extents;
        desc.statistics = {data_type::f32, {dst[0], dst[1], dst[2]}};
        statistics.resize(static_cast<std::size_t>(dst[0] * dst[1] * dst[2]));
        at.statistics = statistics.data();
    }
    const bool has_rules = work.rules.causal || work.rules.window || !work.rules.lengths.empty();
    if (has_rules) at.rules = &work.rules;
    execute(desc, at, plans, loop);
    if (work.lowest_masks) clear_lowest_rows(work, statistics);
    if (work.last_row_keeps_all) execute_last_row(desc, at, plans, loop);
}

void rotate_queries(const attention_work& work, attention_desc& desc, attention_operands& at,
                    scratch_memory& memory, const parallel_loop& loop) {
    const dims& extents = desc.query.extents;
    constexpr std::int64_t width = sizeof(float);
    const std::int64_t row = extents[1] * extents[3] * width;
    const auto size = static_cast<std::size_t>(extents[0] * extents[2] * row) + scratch_alignment;
    auto* const to = reinterpret_cast<float*>(memory.reserve(size));
    rotate(*work.rotary, desc.query, at.query, to, loop);
    desc.query.strides_bytes = {extents[2] * row, extents[3] * width, row, width};
    at.query = to;
}

} // namespace

void run(const attention_work& work, recent_attentions& plans, fusion::block_scratch& memory,
         const parallel_loop& loop) {
    if (!work.rotary) return run_rotated(work, work.desc, work.at, plans, loop);
    auto scratch = memory.take();
    if (!scratch) scratch = std::make_unique<scratch_memory>();
    attention_desc desc = work.desc;
    attention_operands at = work.at;
    rotate_queries(work, desc, at, *scratch, loop);
    run_rotated(work, desc, at, plans, loop);
    memory.give_back(std::move(scratch));
}

} // namespace maskwise::ort
