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

const std::byte* bytes(const void* address) {
    return static_cast<const std::byte*>(address);
}

// Copies the rows of one head. `source` may be null if `rows` is 0.
void copy_rows(std::byte* target, const void* source, std::int64_t offset, std::int64_t rows,
               std::int64_t row_bytes, std::int64_t stride) {
    if (rows == 0) return;
    const std::byte* first = bytes(source) + offset;
    if (stride == row_bytes) {
        std::memcpy(target, first, static_cast<std::size_t>(rows * row_bytes));
        return;
    }
    for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(target + row * row_bytes, first + row * stride,
                    static_cast<std::size_t>(row_bytes));
}

// The cache of keys, or of values.
struct cached_state {
    const cache_layout& cache;
    tensor_desc new_rows; // {batch, heads, rows, depth}
    const void* new_data;
    const void* past_data;
    void* data;                               // may be `past_data`
    const rotary_positions* rotary = nullptr; // null for values

    std::int64_t heads() const { return new_rows.extents[1]; }
    std::int64_t parts() const { return new_rows.extents[0] * heads(); }
    std::int64_t row_bytes() const { return new_rows.extents[3] * new_rows.strides_bytes[3]; }
    bool is_in_place() const { return past_data == data; }
    std::int64_t written_bytes() const {
        return parts() * row_bytes() * (is_in_place() ? new_rows.extents[2] : cache.capacity);
    }
};

void rotate_rows(const cached_state& state, std::int64_t sequence, std::byte* target,
                 std::int64_t offset) {
    const std::int64_t depth = state.new_rows.extents[3];
    for (std::int64_t row = 0; row < state.new_rows.extents[2]; ++row)
        rotate_row(*state.rotary, state.rotary->position(sequence, row),
                   reinterpret_cast<const float*>(bytes(state.new_data) + offset +
                                                  row * state.new_rows.strides_bytes[2]),
                   reinterpret_cast<float*>(target) + row * depth, depth);
}

void fill_head_cache(const cached_state& state, std::int64_t part) {
    const dims& strides = state.new_rows.strides_bytes;
    const std::int64_t sequence = part / state.heads(), head = part % state.heads();
    const std::int64_t row_bytes = state.row_bytes(), added = state.new_rows.extents[2];
    const std::int64_t past = state.cache.past_rows[static_cast<std::size_t>(sequence)];
    const std::int64_t rest = state.cache.capacity - past - added;
    auto* const target =
        static_cast<std::byte*>(state.data) + part * state.cache.capacity * row_bytes;
    if (!state.is_in_place())
        copy_rows(target, state.past_data, part * state.cache.past_capacity * row_bytes, past,
                  row_bytes, row_bytes);
    const std::int64_t offset = sequence * strides[0] + head * strides[1];
    if (state.rotary != nullptr)
        rotate_rows(state, sequence, target + past * row_bytes, offset);
    else
        copy_rows(target + past * row_bytes, state.new_data, offset, added, row_bytes, strides[2]);
    if (!state.is_in_place() && rest > 0)
        std::memset(target + (past + added) * row_bytes, 0,
                    static_cast<std::size_t>(rest * row_bytes));
}

void fill_caches(std::span<const cached_state> states, const parallel_loop& loop) {
    std::int64_t bytes = 0, parts = 0;
    for (const cached_state& state : states) {
        bytes += state.written_bytes();
        parts += state.parts();
    }
    const auto fill_head = [&](std::int64_t part) {
        const cached_state* state = states.data();
        for (; part >= state->parts(); ++state) part -= state->parts();
        fill_head_cache(*state, part);
    };
    const parallel_loop alone = calling_thread();
    (bytes < host_parallel_from_bytes ? alone : loop).run(parts, fill_head);
}

// Returns the mask's row for {batch, head, row}, with numpy broadcasting.
const std::byte* row_of_mask(const tensor_desc& mask, const void* data, const dims& index) {
    const dims strides = with_strides(mask).strides_bytes;
    const std::byte* row = bytes(data);
    const int rank = mask.extents.rank();
    for (int d = 2; d <= rank; ++d)
        if (mask.extents[rank - d] != 1) row += index[4 - d] * strides[rank - d];
    return row;
}

bool are_lowest(const std::byte* row, data_type type, std::int64_t count) {
    const auto all_fit = [&](const auto* first, const auto& is_lowest) {
        return std::all_of(first, first + count, is_lowest);
    };
    if (type == data_type::f32)
        return all_fit(reinterpret_cast<const float*>(row),
                       [](float number) { return number <= std::numeric_limits<float>::lowest(); });
    constexpr std::uint16_t lowest = 0xFBFF, infinite = 0xFC00; // f16 bits; infinite is -infinity
    return all_fit(reinterpret_cast<const std::uint16_t*>(row),
                   [](std::uint16_t number) { return number == lowest || number == infinite; });
}

std::int64_t entry_of(const std::vector<std::int64_t>& numbers, std::int64_t index,
                      std::int64_t fallback) {
    if (numbers.empty()) return fallback;
    return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(index)];
}

// Returns how many keys, from key 0, a row's causal rule and length leave unmasked.
std::int64_t keys_of(const attention_work& work, std::int64_t sequence, std::int64_t row) {
    const std::int64_t length = entry_of(work.rules.lengths, sequence, work.desc.key.extents[2]);
    if (!work.rules.causal) return length;
    return std::clamp<std::int64_t>(row + entry_of(work.rules.offsets, sequence, 0) + 1, 0, length);
}

// Outputs zeros for rows whose every valid key has a bias of lowest() or less. `statistics` has
// log(sum of exp(score)) per row. If this logarithm is above `low`, some key has a larger bias, so
// the row's bias is not read.
void clear_lowest_rows(const attention_work& work, const std::vector<float>& statistics) {
    const tensor_desc &bias = work.desc.bias, &dst = work.desc.dst;
    const float low = bias.type == data_type::f32 ? -1e30F : -32752.0F;
    const std::int64_t row_bytes = dst.extents[3] * dst.strides_bytes[3];
    const std::int64_t columns = bias.extents.end()[-1];
    std::size_t i = 0;
    for (std::int64_t b = 0; b < dst.extents[0]; ++b)
        for (std::int64_t h = 0; h < dst.extents[1]; ++h)
            for (std::int64_t row = 0; row < dst.extents[2]; ++row) {
                if (statistics[i++] > low) continue; // false for NaN
                const std::byte* const mask = row_of_mask(bias, work.operands.bias, {b, h, row});
                if (are_lowest(mask, bias.type, std::min(columns, keys_of(work, b, row))))
                    std::memset(static_cast<std::byte*>(work.operands.dst) +
                                    b * dst.strides_bytes[0] + h * dst.strides_bytes[1] +
                                    row * dst.strides_bytes[2],
                                0, static_cast<std::size_t>(row_bytes));
            }
}

void execute(const attention_desc& desc, const attention_operands& operands,
             recent_attentions& plans, const parallel_loop& loop) {
    const dims &query = desc.query.extents, &value = desc.value.extents;
    double products = static_cast<double>(query[3] + value[3]);
    for (const std::int64_t extent : {query[0], query[1], query[2], value[2]})
        products *= static_cast<double>(extent);
    const parallel_loop alone = calling_thread();
    plans.find(desc, [&] { return compile(desc); })
        .execute(operands, products < operator_parallel_from_products ? alone : loop);
}

tensor_desc last_row(tensor_desc tensor, const void*& data) {
    std::int64_t& rows = tensor.extents[2];
    if (rows != 1) data = bytes(data) + (rows - 1) * tensor.strides_bytes[2];
    rows = 1;
    return tensor;
}

void execute_last_row(attention_desc desc, attention_operands operands, recent_attentions& plans,
                      const parallel_loop& loop) {
    const void* dst = operands.dst;
    desc.query = last_row(desc.query, operands.query);
    desc.dst = last_row(desc.dst, dst);
    if (desc.bias.type != data_type::undef && desc.bias.extents.end()[-2] != 1)
        desc.bias = last_row(with_strides(desc.bias), operands.bias);
    operands.dst = const_cast<void*>(dst);
    mask_rules rules = *operands.rules;
    rules.causal = false;
    operands.rules = &rules;
    execute(desc, operands, plans, loop);
}

} // namespace

void cache_keys_and_values(attention_work& work, const kernel_context& context,
                           const attention_inputs& inputs, const cache_layout& cache,
                           const parallel_loop& loop) {
    std::vector<cached_state> states;
    std::int64_t past = 0; // of the longest sequence
    for (const std::int64_t rows : cache.past_rows) past = std::max(past, rows);
    const auto add = [&](std::size_t output, tensor_desc& used, const void*& used_data,
                         role past_role, const rotary_positions* rotary) {
        tensor_desc whole{used.type, used.extents};
        whole.extents[2] = cache.capacity;
        void* const cache_data = context.output_data(whole.extents, output);
        if (cache_data != nullptr)
            states.push_back({cache, used, used_data, inputs[past_role].data, cache_data, rotary});
        if (past == 0 && rotary == nullptr) return;
        if (cache_data == nullptr)
            refuse(std::to_string(past) + " earlier keys, but no present_key or present_value");
        if (past > 0) used.extents = whole.extents;
        used.strides_bytes = with_strides(whole).strides_bytes;
        used_data = cache_data;
    };
    add(1, work.desc.key, work.operands.key, role::past_key, work.rotary ? &*work.rotary : nullptr);
    add(2, work.desc.value, work.operands.value, role::past_value, nullptr);
    fill_caches(states, loop);
}

namespace {

void run_rotated(const attention_work& work, attention_desc desc, attention_operands operands,
                 recent_attentions& plans, const parallel_loop& loop) {
    std::vector<float> statistics;
    if (work.lowest_bias_masks) {
        const dims& dst = desc.dst.extents;
        desc.statistics = {data_type::f32, {dst[0], dst[1], dst[2]}};
        statistics.resize(static_cast<std::size_t>(dst[0] * dst[1] * dst[2]));
        operands.statistics = statistics.data();
    }
    const bool has_rules = work.rules.causal || work.rules.window || !work.rules.lengths.empty();
    if (has_rules) operands.rules = &work.rules;
    execute(desc, operands, plans, loop);
    if (work.lowest_bias_masks) clear_lowest_rows(work, statistics);
    if (work.last_row_unmasked) execute_last_row(desc, operands, plans, loop);
}

constexpr std::int64_t width = sizeof(float);

std::int64_t rotated_bytes(const dims& query) {
    return query[0] * query[1] * query[2] * query[3] * width + std::int64_t{scratch_alignment};
}

void rotate_queries(const attention_work& work, attention_desc& desc, attention_operands& operands,
                    float* rotated, const parallel_loop& loop) {
    const dims& extents = desc.query.extents;
    const std::int64_t row = extents[1] * extents[3] * width;
    rotate(*work.rotary, desc.query, operands.query, rotated, loop);
    desc.query.strides_bytes = {extents[2] * row, extents[3] * width, row, width};
    operands.query = rotated;
}

} // namespace

void run(const attention_work& work, recent_attentions& plans, fusion::block_scratch& pool,
         const parallel_loop& loop) {
    if (!work.rotary) return run_rotated(work, work.desc, work.operands, plans, loop);
    attention_desc desc = work.desc;
    attention_operands operands = work.operands;
    with_scratch(pool, rotated_bytes(desc.query.extents), [&](std::byte* scratch) {
        rotate_queries(work, desc, operands, reinterpret_cast<float*>(scratch), loop);
        run_rotated(work, desc, operands, plans, loop);
    });
}

} // namespace maskwise::ort
