#include "attention_checks.hpp"
#include "attention_work.hpp"

#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace maskwise::ort {
namespace {

struct attention_call {
    const runtime& api;
    const attention_operator& op;
    const kernel_context& context;
    const attention_settings& settings;
    const parallel_loop& loop;
    attention_inputs inputs{op, context};
    attention_shape shape{check_operands(api, op, inputs, settings)};
};

// An operand viewed as {batch, heads, rows, depth}. `whole` is the operand's shape, of rank 3 or 4;
// `split` is the shape of the view.
tensor_desc by_heads(data_type type, const dims& whole, const dims& split) {
    if (whole.rank() == 4) return with_strides({type, split});
    const auto width = static_cast<std::int64_t>(width_bytes(type));
    const std::int64_t row = whole[2] * width, depth = split[3] * width;
    return {type, split, {whole[1] * row, depth, row, width}};
}

tensor_desc by_heads(const operand& operand, const dims& split) {
    return by_heads(operand.type, *operand.extents, split);
}

void make_result(attention_work& work, const attention_call& call) {
    const dims& query = call.shape.query;
    dims whole{query[0], query[1], query[2], call.shape.value[3]};
    const dims split = whole;
    if (call.inputs[role::query].rank() == 3) whole = {query[0], query[2], query[1] * split[3]};
    work.operands.dst = call.context.output_data(whole);
    work.desc.dst = by_heads(call.inputs[role::query].type, whole, split);
}

// Without a key input, the query input also holds the keys and values.
attention_work begin_work(const attention_call& call) {
    const operand &query = call.inputs[role::query], &key = call.inputs[role::key];
    const operand& value = call.inputs[role::value];
    attention_work work;
    work.desc.query = by_heads(query, call.shape.query);
    work.operands.query = query.data;
    work.desc.key = by_heads(key.is_given ? key : query, call.shape.key);
    work.desc.value = by_heads(value.is_given ? value : query, call.shape.value);
    work.operands.key = key.data;
    work.operands.value = value.data;
    if (!key.is_given) {
        const std::int64_t head = work.desc.query.strides_bytes[1];
        work.operands.key = static_cast<const std::byte*>(query.data) + call.shape.query[1] * head;
        work.operands.value =
            static_cast<const std::byte*>(work.operands.key) + call.shape.key[1] * head;
    }
    work.desc.grouped_queries = call.shape.query[1] != call.shape.key[1];
    work.desc.scale = call.settings.scale;
    work.desc.soft_cap = call.settings.soft_cap;
    make_result(work, call);
    return work;
}

void cache_all_keys(attention_work& work, const attention_call& call) {
    cache_keys_and_values(
        work, call.context, call.inputs,
        {call.shape.past, call.shape.all_keys(),
         std::vector(static_cast<std::size_t>(call.shape.batch()), call.shape.past)},
        call.loop);
}

// ONNX's Attention

void check_lengths(const attention_call& call, const std::int64_t* lengths) {
    for (std::int64_t b = 0; b < call.shape.batch(); ++b)
        if (lengths[b] < 0 || lengths[b] > call.shape.all_keys())
            refuse("nonpad_kv_seqlen[" + std::to_string(b) + "] is " + std::to_string(lengths[b]) +
                   ", expected 0 to " + std::to_string(call.shape.all_keys()));
}

void set_up_onnx_rules(attention_work& work, const attention_call& call) {
    // ONNX Runtime ignores is_causal for a single row with past keys. Before 1.28, it does so for
    // every single row.
    const bool is_single_row =
        call.shape.rows() == 1 && (call.shape.past > 0 || masks_by_lowest(call.api));
    mask_rules& rules = work.rules;
    rules.causal = call.settings.is_causal && !is_single_row;
    rules.offsets = {call.shape.past};
    const operand& operand = call.inputs[role::lengths];
    if (!operand.is_given) return;
    const auto* const lengths = static_cast<const std::int64_t*>(operand.data);
    check_lengths(call, lengths);
    rules.offsets.clear();
    for (std::int64_t b = 0; b < call.shape.batch(); ++b) {
        rules.offsets.push_back(lengths[b] - call.shape.rows());
        rules.lengths.push_back(std::min(lengths[b], call.shape.masked_from));
    }
}

void set_up_onnx(attention_work& work, const attention_call& call) {
    attention_desc& desc = work.desc;
    set_up_onnx_rules(work, call);
    cache_all_keys(work, call);
    desc.key.extents[2] = desc.value.extents[2] = call.shape.masked_from;
    if (masks_by_lowest(call.api)) {
        desc.fill = std::numeric_limits<float>::lowest();
        desc.inf_as_zero = false;
    }
    const operand& mask = call.inputs[role::mask];
    if (!mask.is_given) return;
    const bool is_cond = mask.type == data_type::boolean;
    (is_cond ? desc.cond : desc.bias) = {mask.type, *mask.extents};
    (is_cond ? work.operands.cond : work.operands.bias) = mask.data;
    work.lowest_bias_masks = !is_cond && !masks_by_lowest(call.api);
}

// MultiHeadAttention

// Replaces a query, key or value by its sum with `bias`, which has one number per column.
void add_bias(attention_work& work, tensor_desc& operand, const void*& data, const float* bias) {
    const dims& extents = operand.extents;
    const std::int64_t width = extents[1] * extents[3], rows = extents[0] * extents[2];
    std::vector<float>& sums = work.computed.emplace_back(static_cast<std::size_t>(rows * width));
    const auto* const source = static_cast<const float*>(data);
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < width; ++column)
            sums[static_cast<std::size_t>(row * width + column)] =
                source[row * width + column] + bias[column];
    data = sums.data();
}

void add_projection_bias(attention_work& work, const attention_call& call) {
    if (!call.inputs[role::projection_bias].is_given) return;
    const auto* bias = static_cast<const float*>(call.inputs[role::projection_bias].data);
    const std::int64_t width = call.shape.query[1] * call.shape.query[3];
    add_bias(work, work.desc.query, work.operands.query, bias);
    // Keys of rank 4 come from an encoder, already projected with their bias.
    if (call.inputs[role::key].rank() == 4) return;
    add_bias(work, work.desc.key, work.operands.key, bias + width);
    add_bias(work, work.desc.value, work.operands.value, bias + 2 * width);
}

// Sets work.rules.lengths from a mask of lengths and returns true, if every length is at least 1
// and `masked` is -10000 or less. The operator adds `masked` to masked scores. In f32, a masked key
// then has no weight, unless scores differ by nearly 10000.
bool mask_by_lengths(attention_work& work, const attention_call& call) {
    constexpr float max_masked = -10000.0F; // the attribute's default
    const operand& mask = call.inputs[role::mask];
    const auto* const numbers = static_cast<const std::int32_t*>(mask.data);
    if (mask.rank() != 1 || call.settings.masked > max_masked ||
        std::any_of(numbers, numbers + call.shape.batch(), [](std::int32_t n) { return n < 1; }))
        return false;
    for (std::int64_t b = 0; b < call.shape.batch(); ++b)
        work.rules.lengths.push_back(std::min<std::int64_t>(numbers[b], call.shape.all_keys()));
    // With -infinity, values past a length do not reach the result. No row is fully masked.
    work.desc.fill = -std::numeric_limits<float>::infinity();
    return true;
}

void add_padding(attention_work& work, const attention_call& call) {
    const operand& mask = call.inputs[role::mask];
    if (!mask.is_given || mask_by_lengths(work, call)) return;
    const std::int64_t batch = call.shape.batch(), keys = call.shape.all_keys();
    const std::int64_t rows = mask.rank() == 3 ? call.shape.rows() : 1;
    const auto* const numbers = static_cast<const std::int32_t*>(mask.data);
    std::vector<float>& bias =
        work.computed.emplace_back(static_cast<std::size_t>(batch * rows * keys));
    for (std::int64_t b = 0, i = 0; b < batch; ++b)
        for (std::int64_t key = 0; key < rows * keys; ++key, ++i) {
            const bool is_unmasked = mask.rank() == 1 ? key < numbers[b] : numbers[i] > 0;
            bias[static_cast<std::size_t>(i)] = is_unmasked ? 0 : call.settings.masked;
        }
    work.desc.bias = {data_type::f32, {batch, 1, rows, keys}};
    work.operands.bias = bias.data();
}

void set_up_multi_head(attention_work& work, const attention_call& call) {
    work.desc.fill = std::numeric_limits<float>::lowest();
    work.desc.inf_as_zero = false;
    add_projection_bias(work, call);
    cache_all_keys(work, call);
    add_padding(work, call);
    if (const operand& bias = call.inputs[role::bias]; bias.is_given) {
        work.desc.bias = {bias.type, *bias.extents};
        work.operands.bias = bias.data;
    }
    work.rules.causal = call.settings.is_causal && call.shape.rows() > 1;
    work.rules.offsets = {call.shape.past};
    work.last_row_unmasked = work.rules.causal && call.shape.key[2] > call.shape.rows();
}

// GroupQueryAttention

struct group_query_lengths {
    bool is_prompt = false;    // the first call, which ignores the past
    std::int64_t capacity = 0; // rows of present_key
    std::int64_t longest = 0;  // keys of the longest sequence
    // Per sequence: keys in the cache, keys including this call's, and the position of the first
    // query.
    std::vector<std::int64_t> past_rows{}, lengths{}, positions{};
};

// Whether the call is a prompt. Throws argument_error if total_sequence_length does not fit. If the
// key input has 0 rows, another layer filled the cache, which must hold all keys.
bool is_prompt(const attention_shape& shape, std::int64_t total) {
    const std::int64_t rows = shape.rows(), new_keys = shape.key[2];
    const bool is_first = total == rows;
    const bool fits = total <= shape.past || total == shape.past + new_keys;
    const bool needs_no_past = is_first && new_keys > 0;
    if (total < rows || !(needs_no_past || fits) || (!is_first && rows > 1 && shape.batch() != 1))
        refuse("total_sequence_length is " + std::to_string(total) + " with " +
               std::to_string(shape.batch()) + " sequences of " + std::to_string(rows) +
               " rows and a past of " + std::to_string(shape.past));
    return is_first;
}

// Any shape of rank 1 or more with one number per sequence fits, because model builders keep
// reduced dimensions as 1.
void check_number_of_lengths(const operand& lengths, std::int64_t batch) {
    std::int64_t count = 1;
    for (const std::int64_t extent : *lengths.extents) count *= extent;
    if (lengths.rank() == 0 || count != batch)
        expect_shape(lengths.name, *lengths.extents, {batch});
}

group_query_lengths read_lengths(const attention_call& call) {
    const std::int64_t total = *static_cast<const std::int32_t*>(call.inputs[role::total].data);
    const std::int64_t rows = call.shape.rows(), past = call.shape.past;
    group_query_lengths result{is_prompt(call.shape, total), std::max(total, past), total};
    check_number_of_lengths(call.inputs[role::lengths], call.shape.batch());
    for (std::int64_t b = 0; b < call.shape.batch(); ++b) {
        const std::int64_t last =
            static_cast<const std::int32_t*>(call.inputs[role::lengths].data)[b];
        const std::int64_t first = result.is_prompt ? 0 : last + 1 - rows;
        const std::int64_t cached = call.shape.key[2] == 0 ? last + 1 : first;
        if (last < 0 || last >= result.capacity || first < 0 || cached > past)
            refuse("seqlens_k[" + std::to_string(b) + "] is " + std::to_string(last) + " with " +
                   std::to_string(rows) + " rows, room for " + std::to_string(result.capacity) +
                   " keys, and a past of " + std::to_string(past));
        result.past_rows.push_back(cached);
        result.positions.push_back(first);
        result.lengths.push_back(last + 1);
        result.longest = std::max(result.longest, last + 1);
    }
    return result;
}

void set_up_group_query(attention_work& work, const attention_call& call) {
    const group_query_lengths lengths = read_lengths(call);
    if (call.settings.rotates)
        work.rotary = read_rotary_positions({call.inputs, call.shape.query, lengths.longest,
                                             lengths.is_prompt, lengths.positions,
                                             call.settings.rotates_interleaved});
    cache_keys_and_values(work, call.context, call.inputs,
                          {call.shape.past, lengths.capacity, lengths.past_rows}, call.loop);
    work.rules.causal = true;
    work.rules.offsets = lengths.positions;
    if (call.settings.window > 0) work.rules.window = {.left = call.settings.window - 1};
    // In a prompt, a length may exceed the rows, but there are no keys past the rows.
    for (const std::int64_t length : lengths.lengths)
        work.rules.lengths.push_back(std::min(length, work.desc.key.extents[2]));
}

} // namespace

attention_work begin_attention(const runtime& api, const attention_operator& op,
                               const kernel_context& context, const attention_settings& settings,
                               const parallel_loop& loop) {
    const attention_call call{api, op, context, settings, loop};
    attention_work work = begin_work(call);
    switch (op.kind) {
    case attention_kind::onnx:
        set_up_onnx(work, call);
        break;
    case attention_kind::multi_head:
        set_up_multi_head(work, call);
        break;
    case attention_kind::group_query:
        set_up_group_query(work, call);
        break;
    }
    return work;
}

} // namespace maskwise::ort
