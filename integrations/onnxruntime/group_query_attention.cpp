#include "group_query_attention.hpp"

#include <algorithm>
#include <string>

namespace maskwise::ort {
namespace {

struct group_query_inputs {
    input_tensor query, past_key{}, past_value{}, last_keys{}, total{};
    tensor_desc queries{}, keys{}, values{}; // by heads
    const void *key_at = nullptr, *value_at = nullptr;
    std::int64_t past_capacity = 0, capacity = 0;
    std::int64_t longest = 0; // of the sequences, in keys, as lengths or their total say
    bool begins = false;      // without a past
    // Of each sequence, in keys: those in the cache, those with this call's, and the position of
    // the first query.
    std::vector<std::int64_t> past_rows{}, lengths{}, positions{};

    std::int64_t batch() const { return queries.extents[0]; }
    std::int64_t rows() const { return queries.extents[2]; }
    std::int64_t new_keys() const { return keys.extents[2]; } // 0: another layer cached them
    dims dst() const { return {batch(), rows(), queries.extents[1] * queries.extents[3]}; }
};

bool is_given(const input_tensor& which) {
    return which.theirs != nullptr;
}

tensor_desc projection(const char* name, const input_tensor& of, std::int64_t heads) {
    expect_shape(name, of.desc.extents, {-1, -1, -1});
    return by_heads(name, of.desc, heads);
}

// Heads of the query input, which has those of keys and of values behind those of queries.
void unpack(group_query_inputs& in, const attention_settings& settings) {
    const std::int64_t keys_behind = settings.query_heads;
    const std::int64_t values_behind = keys_behind + settings.key_heads;
    const tensor_desc all =
        projection("packed query", in.query, values_behind + settings.key_heads);
    in.queries = in.keys = all;
    in.queries.extents[1] = settings.query_heads;
    in.keys.extents[1] = settings.key_heads;
    in.values = in.keys;
    if (in.query.data == nullptr) return; // no element, which is refused
    const auto* const at = static_cast<const std::byte*>(in.query.data);
    in.key_at = at + keys_behind * all.strides_bytes[1];
    in.value_at = at + values_behind * all.strides_bytes[1];
}

void read_projections(group_query_inputs& in, const call& at, const attention_settings& settings) {
    const input_tensor key = at.optional_input(1);
    if (!is_given(key)) return unpack(in, settings);
    const input_tensor value = at.input(2);
    in.queries = projection("query", in.query, settings.query_heads);
    in.keys = projection("key", key, settings.key_heads);
    in.values = projection("value", value, settings.key_heads);
    in.key_at = key.data;
    in.value_at = value.data;
}

void check_shapes(const group_query_inputs& in) {
    constexpr std::int64_t unit = 8; // ONNX Runtime takes no other depths
    const dims &query = in.queries.extents, &key = in.keys.extents;
    require_elements("query", in.query.desc);
    expect_shape("key by heads", key, {query[0], -1, key[2] == 0 ? 0 : query[2], query[3]});
    expect_shape("value by heads", in.values.extents, key);
    if (query[3] % unit != 0 || query[1] % key[1] != 0)
        throw shape_error("Maskwise: query by heads is " + to_string(query) + ", key " +
                          to_string(key) + ": depths are multiples of " + std::to_string(unit) +
                          ", heads of each other");
    if (is_given(in.past_key) != is_given(in.past_value))
        throw argument_error("Maskwise: one of past_key and past_value is missing");
    if (!is_given(in.past_key)) return;
    const dims& past = in.past_key.desc.extents;
    expect_shape("past_key", past, {key[0], key[1], -1, key[3]});
    expect_shape("past_value", in.past_value.desc.extents, past);
}

[[noreturn]] void refuse_total(const group_query_inputs& in, std::int64_t total) {
    throw argument_error("Maskwise: total_sequence_length is " + std::to_string(total) + " with " +
                         std::to_string(in.batch()) + " times " + std::to_string(in.rows()) +
                         " rows behind " + std::to_string(in.past_capacity));
}

// A prompt is the first: it begins a sequence, whatever the past holds, unless all its keys are
// there.
bool is_prompt(const group_query_inputs& in, std::int64_t total) {
    const bool is_first = total == in.rows();
    const bool fits = total <= in.past_capacity || total == in.past_capacity + in.new_keys();
    const bool needs_no_past = is_first && in.new_keys() > 0;
    if (total < in.rows() || !(needs_no_past || fits) ||
        (!is_first && in.rows() > 1 && in.batch() != 1))
        refuse_total(in, total);
    return is_first;
}

// A shape of extents that are 1 or the number of sequences, of which there is a length each:
// builders of models keep dimensions of a sum.
void check_lengths(const group_query_inputs& in) {
    const dims& shape = in.last_keys.desc.extents;
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    if (shape.empty() || count != in.batch()) expect_shape("seqlens_k", shape, {in.batch()});
}

void read_lengths(group_query_inputs& in) {
    const dims& one = in.total.desc.extents;
    if (!one.empty()) expect_shape("total_sequence_length", one, {1});
    const std::int64_t total = *static_cast<const std::int32_t*>(in.total.data);
    in.begins = is_prompt(in, total);
    in.longest = total;
    in.capacity = std::max(total, in.past_capacity);
    check_lengths(in);
    for (std::int64_t b = 0; b < in.batch(); ++b) {
        const std::int64_t last = static_cast<const std::int32_t*>(in.last_keys.data)[b];
        const std::int64_t first = in.begins ? 0 : last + 1 - in.rows();
        const std::int64_t past = in.new_keys() == 0 ? last + 1 : first;
        if (last < 0 || last >= in.capacity || first < 0 || past > in.past_capacity)
            throw argument_error("Maskwise: seqlens_k[" + std::to_string(b) + "] is " +
                                 std::to_string(last) + " with " + std::to_string(in.rows()) +
                                 " rows, room for " + std::to_string(in.capacity) +
                                 " keys, and a past of " + std::to_string(in.past_capacity));
        in.past_rows.push_back(past);
        in.positions.push_back(first);
        in.lengths.push_back(last + 1);
        in.longest = std::max(in.longest, last + 1);
    }
}

group_query_inputs read_inputs(const call& at, const attention_settings& settings) {
    group_query_inputs in{at.input(0), at.optional_input(3), at.optional_input(4), at.input(5),
                          at.input(6)};
    read_projections(in, at, settings);
    check_shapes(in);
    if (is_given(in.past_key)) in.past_capacity = in.past_key.desc.extents[2];
    read_lengths(in);
    return in;
}

} // namespace

attention_work begin_group_query_attention(const runtime&, const call& at,
                                           const attention_settings& settings,
                                           const parallel_loop& loop) {
    const group_query_inputs in = read_inputs(at, settings);
    attention_work work = begin_work({in.queries, in.query.data}, {in.keys, in.key_at},
                                     {in.values, in.value_at}, settings);
    work.desc.grouped_queries = true;
    work.desc.dst = by_heads("dst", {in.queries.type, in.dst()}, settings.query_heads);
    if (settings.rotates)
        work.rotary = read_rotary_positions({at, in.queries.extents, in.longest, in.begins,
                                             in.positions, settings.rotates_neighbours});
    work.at.dst = at.output_data(in.dst());
    keep_for_next(work, at, {in.past_capacity, in.capacity, in.past_rows}, in.past_key,
                  in.past_value, loop);
    work.rules.causal = true;
    work.rules.offsets = in.positions;
    work.rules.lengths = in.lengths;
    if (settings.window > 0) work.rules.window = {.left = settings.window - 1};
    // A prompt may be shorter than its rows, and its keys are no more than these.
    for (std::int64_t& length : work.rules.lengths)
        length = std::min(length, work.desc.key.extents[2]);
    return work;
}

} // namespace maskwise::ort
