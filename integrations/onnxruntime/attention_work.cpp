#include "attention_work.hpp"

#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
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

void join_head(const cached_state& state, std::int64_t sequence, std::int64_t head) {
    const dims &extents = state.added.extents, &strides = state.added.strides_bytes;
    const auto index = static_cast<std::size_t>(sequence);
    const std::int64_t row_bytes = extents[3] * strides[3];
    const std::int64_t past = state.past_rows[index], added = state.added_rows[index];
    const std::int64_t place = sequence * extents[1] + head;
    auto* const to = static_cast<std::byte*>(state.at) + place * state.capacity * row_bytes;
    if (state.past_at != state.at)
        copy_rows(to, state.past_at, place * state.past_capacity * row_bytes, past, row_bytes,
                  row_bytes);
    copy_rows(to + past * row_bytes, state.added_at, sequence * strides[0] + head * strides[1],
              added, row_bytes, strides[2]);
    if (state.past_at != state.at && past + added < state.capacity)
        std::memset(to + (past + added) * row_bytes, 0,
                    static_cast<std::size_t>((state.capacity - past - added) * row_bytes));
}

// A mask that broadcasts from the right, as it lies for one head.
const std::byte* mask_of_head(const tensor_desc& mask, const void* at, std::int64_t sequence,
                              std::int64_t head) {
    const dims strides = with_strides(mask).strides_bytes;
    const std::byte* found = bytes(at);
    const int rank = mask.extents.rank();
    if (rank > 2 && mask.extents[rank - 3] != 1) found += head * strides[rank - 3];
    if (rank > 3 && mask.extents[rank - 4] != 1) found += sequence * strides[rank - 4];
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
    const std::int64_t all =
        one_of(work.rules.lengths, sequence, work.desc.key.extents[2]);
    if (!work.rules.causal) return all;
    return std::clamp<std::int64_t>(row + one_of(work.rules.offsets, sequence, 0) + 1, 0, all);
}

// No row without such a bias has a statistic that low.
void clear_lowest_rows(const attention_work& work, const std::vector<float>& statistics) {
    const tensor_desc &bias = work.desc.bias, &dst = work.desc.dst;
    const float low = bias.type == data_type::f32 ? -1e30F : -32752.0F;
    const std::int64_t row_bytes = dst.extents[3] * dst.strides_bytes[3];
    const std::int64_t mask_bytes =
        work.desc.key.extents[2] * static_cast<std::int64_t>(width_bytes(bias.type));
    std::size_t at = 0;
    for (std::int64_t b = 0; b < dst.extents[0]; ++b)
        for (std::int64_t h = 0; h < dst.extents[1]; ++h)
            for (std::int64_t row = 0; row < dst.extents[2]; ++row) {
                if (statistics[at++] > low) continue; // NaN does not
                const std::byte* const mask = mask_of_head(bias, work.at.bias, b, h);
                if (are_lowest(mask + row * mask_bytes, bias.type, keys_of(work, b, row)))
                    std::memset(static_cast<std::byte*>(work.at.dst) + b * dst.strides_bytes[0] +
                                    h * dst.strides_bytes[1] + row * dst.strides_bytes[2],
                                0, static_cast<std::size_t>(row_bytes));
            }
}

} // namespace

void expect_shape(std::string_view name, const dims& actual, const dims& expected) {
    bool fits = actual.rank() == expected.rank();
    for (int d = 0; fits && d < actual.rank(); ++d)
        fits = expected[d] == -1 || actual[d] == expected[d];
    if (!fits)
        throw shape_error("Maskwise: " + std::string(name) + " is " + to_string(actual) +
                          ", expected " + to_string(expected) + ", -1 is any");
}

tensor_desc by_heads(std::string_view name, const tensor_desc& of, std::int64_t heads) {
    const dims& all = of.extents;
    const auto width = static_cast<std::int64_t>(width_bytes(of.type));
    if (all.rank() == 4) return with_strides(of);
    if (all.rank() != 3 || heads < 1 || all[2] % heads != 0)
        throw shape_error("Maskwise: " + std::string(name) + " is " + to_string(all) + " with " +
                          std::to_string(heads) + " heads");
    const std::int64_t depth = all[2] / heads;
    return {of.type,
            {all[0], heads, all[1], depth},
            {all[1] * all[2] * width, depth * width, all[2] * width, width}};
}

void join(const cached_state& state, const parallel_loop& loop) {
    const std::int64_t heads = state.added.extents[1], parts = state.added.extents[0] * heads;
    const std::int64_t bytes =
        parts * state.capacity * state.added.extents[3] * state.added.strides_bytes[3];
    constexpr std::int64_t least_bytes = 1 << 18; // waking a thread costs as much as copying these
    const auto one = [&](std::int64_t part) { join_head(state, part / heads, part % heads); };
    if (bytes >= least_bytes) return loop.run(parts, one);
    for (std::int64_t part = 0; part < parts; ++part) one(part);
}

attention_plan recent_plans::find(const attention_desc& desc) {
    constexpr std::size_t most = 4;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [of, plan] : kept_)
            if (of == desc) return plan;
    }
    attention_plan made = compile(desc);
    const std::lock_guard lock(mutex_);
    if (kept_.size() == most) kept_.pop_back();
    kept_.emplace_front(desc, made);
    return made;
}

void run(const attention_work& work, recent_plans& plans, const parallel_loop& loop) {
    attention_desc desc = work.desc;
    attention_operands at = work.at;
    std::vector<float> statistics;
    if (work.lowest_masks) {
        const dims& dst = desc.dst.extents;
        desc.statistics = {data_type::f32, {dst[0], dst[1], dst[2]}};
        statistics.resize(static_cast<std::size_t>(dst[0] * dst[1] * dst[2]));
        at.statistics = statistics.data();
    }
    const bool has_rules = work.rules.causal || work.rules.window || !work.rules.lengths.empty();
    if (has_rules) at.rules = &work.rules;
    plans.find(desc).execute(at, loop);
    if (work.lowest_masks) clear_lowest_rows(work, statistics);
}

} // namespace maskwise::ort
