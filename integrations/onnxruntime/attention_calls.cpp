#include "attention_checks.hpp"
#include "attention_work.hpp"

#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace maskwise::ort {
namespace {

struct attention_call {
    const runtime& with;
    const attention_operator& of;
    const call& at;
    const attention_settings& settings;
    const parallel_loop& loop;
    attention_inputs in{of, at};
    attention_shape shape{check_operands(with, of, in, settings)};
};

// {batch, heads, rows, depth} of an operand of three dimensions, or of four as it is.
tensor_desc by_heads(data_type type, const dims& whole, const dims& parted) {
    if (whole.rank() == 4) return with_strides({type, parted});
    const auto width = static_cast<std::int64_t>(width_bytes(type));
    const std::int64_t row = whole[2] * width, depth = parted[3] * width;
    return {type, parted, {whole[1] * row, depth, row, width}};
}

tensor_desc by_heads(const operand& of, const dims& parted) {
    return by_heads(of.type, *of.extents, parted);
}

void make_result(attention_work& work, const attention_call& of) {
    const dims& query = of.shape.query;
    dims whole{query[0], query[1], query[2], of.shape.value[3]};
    const dims parted = whole;
    if (of.in[role::query].rank() == 3) whole = {query[0], query[2], query[1] * parted[3]};
    work.at.dst = of.at.output_data(whole);
    work.desc.dst = by_heads(of.in[role::query].type, whole, parted);
}

// Without a key, the query's rows also hold those of keys and values.
attention_work begin_work(const attention_call& of) {
    const operand &query = of.in[role::query], &key = of.in[role::key];
    const operand& value = of.in[role::value];
    attention_work work;
    work.desc.query = by_heads(query, of.shape.query);
    work.at.query = query.data;
    work.desc.key = by_heads(key.is_given ? key : query, of.shape.key);
    work.desc.value = by_heads(value.is_given ? value : query, of.shape.value);
    work.at.key = key.data;
    work.at.value = value.data;
    if (!key.is_given) {
        const std::int64_t head = work.desc.query.strides_bytes[1];
        work.at.key = static_cast<const std::byte*>(query.data) + of.shape.query[1] * head;
        work.at.value = static_cast<const std::byte*>(work.at.key) + of.shape.key[1] * head;
    }
    work.desc.grouped_queries = of.shape.query[1] != of.shape.key[1];
    work.desc.scale = of.settings.scale;
    work.desc.soft_cap = of.settings.soft_cap;
    make_result(work, of);
    return work;
}

void keep_all(attention_work& work, const attention_call& of) {
    keep_for_next(work, of.at, of.in,
                  {of.shape.past, of.shape.all_keys(),
                   std::vector(static_cast<std::size_t>(of.shape.batch()), of.shape.past)},
                  of.loop);
}

// ONNX's Attention

void check_lengths(const attention_call& of, const std::int64_t* lengths) {
    for (std::int64_t b = 0; b < of.shape.batch(); ++b)
        if (lengths[b] < 0 || lengths[b] > of.shape.all_keys())
            refuse("nonpad_kv_seqlen[" + std::to_string(b) + "] is " + std::to_string(lengths[b]) +
                   ", the keys are " + std::to_string(of.shape.all_keys()));
}

void describe_onnx_rules(attention_work& work, const attention_call& of) {
    // A single row after earlier keys keeps all of them, and all that follow.
    const bool is_next = of.shape.rows() == 1 && (of.shape.past > 0 || masks_by_lowest(of.with));
    mask_rules& rules = work.rules;
    rules.causal = of.settings.is_causal && !is_next;
    rules.offsets = {of.shape.past};
    const operand& given = of.in[role::lengths];
    if (!given.is_given) return;
    const auto* const lengths = static_cast<const std::int64_t*>(given.data);
    check_lengths(of, lengths);
    rules.offsets.clear();
    for (std::int64_t b = 0; b < of.shape.batch(); ++b) {
        rules.offsets.push_back(lengths[b] - of.shape.rows());
        rules.lengths.push_back(std::min(lengths[b], of.shape.masked_from));
    }
}

void describe_onnx(attention_work& work, const attention_call& of) {
    attention_desc& desc = work.desc;
    describe_onnx_rules(work, of);
    keep_all(work, of);
    desc.key.extents[2] = desc.value.extents[2] = of.shape.masked_from;
    if (masks_by_lowest(of.with)) {
        desc.fill = std::numeric_limits<float>::lowest();
        desc.inf_as_zero = false;
    }
    const operand& mask = of.in[role::mask];
    if (!mask.is_given) return;
    const bool keeps = mask.type == data_type::boolean;
    (keeps ? desc.cond : desc.bias) = {mask.type, *mask.extents};
    (keeps ? work.at.cond : work.at.bias) = mask.data;
    work.lowest_masks = !keeps && !masks_by_lowest(of.with);
}

// MultiHeadAttention

// Adds numbers to each row of a query, key or value, and puts the sums in its place.
void add_numbers(attention_work& work, tensor_desc& operand, const void*& at,
                 const float* numbers) {
    const dims& extents = operand.extents;
    const std::int64_t width = extents[1] * extents[3], rows = extents[0] * extents[2];
    std::vector<float>& sums = work.made.emplace_back(static_cast<std::size_t>(rows * width));
    const auto* const from = static_cast<const float*>(at);
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < width; ++column)
            sums[static_cast<std::size_t>(row * width + column)] =
                from[row * width + column] + numbers[column];
    at = sums.data();
}

void add_projection_bias(attention_work& work, const attention_call& of) {
    if (!of.in[role::added].is_given) return;
    const auto* numbers = static_cast<const float*>(of.in[role::added].data);
    const std::int64_t width = of.shape.query[1] * of.shape.query[3];
    add_numbers(work, work.desc.query, work.at.query, numbers);
    // Keys of four dimensions were projected before, with their bias: an encoder's.
    if (of.in[role::key].rank() == 4) return;
    add_numbers(work, work.desc.key, work.at.key, numbers + width);
    add_numbers(work, work.desc.value, work.at.value, numbers + 2 * width);
}

// Lengths mask by a rule if each sequence keeps a key. The operator adds `masked` to other keys,
// which then leaves them no weight in f32, unless a score is higher than another by nearly as much.
bool mask_by_lengths(attention_work& work, const attention_call& of) {
    constexpr float least_masked = -10000.0F; // the default
    const operand& mask = of.in[role::mask];
    const auto* const given = static_cast<const std::int32_t*>(mask.data);
    if (mask.rank() != 1 || of.settings.masked > least_masked ||
        std::any_of(given, given + of.shape.batch(), [](std::int32_t n) { return n < 1; }))
        return false;
    for (std::int64_t b = 0; b < of.shape.batch(); ++b)
        work.rules.lengths.push_back(std::min<std::int64_t>(given[b], of.shape.all_keys()));
    // No row is masked as a whole, and no value past a length matters.
    work.desc.fill = -std::numeric_limits<float>::infinity();
    return true;
}

void add_padding(attention_work& work, const attention_call& of) {
    const operand& mask = of.in[role::mask];
    if (!mask.is_given || mask_by_lengths(work, of)) return;
    const std::int64_t batch = of.shape.batch(), keys = of.shape.all_keys();
    const std::int64_t rows = mask.rank() == 3 ? of.shape.rows() : 1;
    const auto* const given = static_cast<const std::int32_t*>(mask.data);
    std::vector<float>& bias =
        work.made.emplace_back(static_cast<std::size_t>(batch * rows * keys));
    for (std::int64_t b = 0, at = 0; b < batch; ++b)
        for (std::int64_t key = 0; key < rows * keys; ++key, ++at) {
            const bool is_kept = mask.rank() == 1 ? key < given[b] : given[at] > 0;
            bias[static_cast<std::size_t>(at)] = is_kept ? 0 : of.settings.masked;
        }
    work.desc.bias = {data_type::f32, {batch, 1, rows, keys}};
    work.at.bias = bias.data();
}

void describe_multi_head(attention_work& work, const attention_call& of) {
    work.desc.fill = std::numeric_limits<float>::lowest();
    work.desc.inf_as_zero = false;
    add_projection_bias(work, of);
    keep_all(work, of);
    add_padding(work, of);
    if (const operand& bias = of.in[role::bias]; bias.is_given) {
        work.desc.bias = {bias.type, *bias.extents};
        work.at.bias = bias.data;
    }
    work.rules.causal = of.settings.is_causal && of.shape.rows() > 1;
    work.rules.offsets = {of.shape.past};
    work.last_row_keeps_all = work.rules.causal && of.shape.key[2] > of.shape.rows();
}

// GroupQueryAttention

struct group_query_lengths {
    bool begins = false;       // a prompt: a sequence's first call, whatever the past holds
    std::int64_t capacity = 0; // of the result of keys
    std::int64_t longest = 0;  // of the sequences, in keys, as lengths or their total say
    // Of each sequence, in keys: those in the cache, those with this call's, and the position of
    // the first query.
    std::vector<std::int64_t> past_rows{}, lengths{}, positions{};
};

// Keys without rows are those that another layer cached; then all must be there.
bool is_prompt(const attention_shape& shape, std::int64_t total) {
    const std::int64_t rows = shape.rows(), new_keys = shape.key[2];
    const bool is_first = total == rows;
    const bool fits = total <= shape.past || total == shape.past + new_keys;
    const bool needs_no_past = is_first && new_keys > 0;
    if (total < rows || !(needs_no_past || fits) || (!is_first && rows > 1 && shape.batch() != 1))
        refuse("total_sequence_length is " + std::to_string(total) + " with " +
               std::to_string(shape.batch()) + " times " + std::to_string(rows) + " rows after " +
               std::to_string(shape.past));
    return is_first;
}

// Builders of models keep dimensions of a sum, so every extent is 1 or the number of sequences.
void check_number_of_lengths(const operand& lengths, std::int64_t batch) {
    std::int64_t count = 1;
    for (const std::int64_t extent : *lengths.extents) count *= extent;
    if (lengths.rank() == 0 || count != batch)
        expect_shape(lengths.name, *lengths.extents, {batch});
}

group_query_lengths read_lengths(const attention_call& of) {
    const std::int64_t total = *static_cast<const std::int32_t*>(of.in[role::total].data);
    const std::int64_t rows = of.shape.rows(), past = of.shape.past;
    group_query_lengths read{is_prompt(of.shape, total), std::max(total, past), total};
    check_number_of_lengths(of.in[role::lengths], of.shape.batch());
    for (std::int64_t b = 0; b < of.shape.batch(); ++b) {
        const std::int64_t last = static_cast<const std::int32_t*>(of.in[role::lengths].data)[b];
        const std::int64_t first = read.begins ? 0 : last + 1 - rows;
        const std::int64_t cached = of.shape.key[2] == 0 ? last + 1 : first;
        if (last < 0 || last >= read.capacity || first < 0 || cached > past)
            refuse("seqlens_k[" + std::to_string(b) + "] is " + std::to_string(last) + " with " +
                   std::to_string(rows) + " rows, room for " + std::to_string(read.capacity) +
                   " keys, and a past of " + std::to_string(past));
        read.past_rows.push_back(cached);
        read.positions.push_back(first);
        read.lengths.push_back(last + 1);
        read.longest = std::max(read.longest, last + 1);
    }
    return read;
}

void describe_group_query(attention_work& work, const attention_call& of) {
    const group_query_lengths lengths = read_lengths(of);
    if (of.settings.rotates)
        work.rotary = read_rotary_positions({of.in, of.shape.query, lengths.longest, lengths.begins,
                                             lengths.positions, of.settings.rotates_neighbours});
    keep_for_next(work, of.at, of.in, {of.shape.past, lengths.capacity, lengths.past_rows},
                  of.loop);
    work.rules.causal = true;
    work.rules.offsets = lengths.positions;
    if (of.settings.window > 0) work.rules.window = {.left = of.settings.window - 1};
    // A prompt may be shorter than its rows, and its keys are no more than these.
    for (const std::int64_t length : lengths.lengths)
        work.rules.lengths.push_back(std::min(length, work.desc.key.extents[2]));
}

} // namespace

attention_work begin_attention(const runtime& with, const attention_operator& of, const call& at,
                               const attention_settings& settings, const parallel_loop& loop) {
    const attention_call given{with, of, at, settings, loop};
    attention_work work = begin_work(given);
    switch (of.kind) {
    case attention_kind::onnx:
        describe_onnx(work, given);
        break;
    case attention_kind::multi_head:
        describe_multi_head(work, given);
        break;
    case attention_kind::group_query:
        describe_group_query(work, given);
        break;
    }
    return work;
}

} // namespace maskwise::ort
