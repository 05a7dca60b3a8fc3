#include "onnx_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace maskwise::ort {
namespace {

struct onnx_inputs {
    input_tensor query, key, value, mask, past_key, past_value, lengths;
    tensor_desc queries{}, keys{}, values{}; // by heads
    std::int64_t past = 0;                   // rows
    std::int64_t masked_from = 0;            // the first key that is masked in all rows

    bool is_given(const input_tensor& which) const { return which.theirs != nullptr; }
    std::int64_t batch() const { return queries.extents[0]; }
    std::int64_t rows() const { return queries.extents[2]; }
    std::int64_t all_keys() const { return past + keys.extents[2]; }
};

// With four dimensions attributes may repeat what the shape says.
std::int64_t heads_of(const char* name, const tensor_desc& of, std::int64_t given) {
    if (of.extents.rank() != 4) return given;
    if (given > 0 && given != of.extents[1])
        throw shape_error(std::string("Maskwise: ") + name + " is " + std::to_string(given) +
                          ", the shape " + to_string(of.extents));
    return of.extents[1];
}

void check_past(const onnx_inputs& in) {
    if (in.is_given(in.past_key) != in.is_given(in.past_value))
        throw argument_error("Maskwise: one of past_key and past_value is missing");
    if (!in.is_given(in.past_key)) return;
    const dims &key = in.keys.extents, &value = in.values.extents;
    expect_shape("past_key", in.past_key.desc.extents, {key[0], key[1], -1, key[3]});
    expect_shape("past_value", in.past_value.desc.extents,
                 {key[0], key[1], in.past_key.desc.extents[2], value[3]});
}

// ONNX broadcasts every dimension of a mask, ONNX Runtime those before the last two. With
// `pads_columns` keys without a column are masked.
void read_mask(onnx_inputs& in, const runtime& with, bool pads_columns) {
    in.masked_from = in.all_keys();
    if (!in.is_given(in.mask)) return;
    const bool is_by_onnx = !masks_by_lowest(with); // before, ONNX Runtime's own rules alone
    const dims& mask = in.mask.desc.extents;
    const int rank = mask.rank(), least = is_by_onnx ? 1 : 2;
    const std::int64_t columns = rank == 0 ? 1 : mask[rank - 1];
    if (is_by_onnx && pads_columns) in.masked_from = std::min(columns, in.all_keys());
    const dims whole{in.batch(), in.queries.extents[1], in.rows(), in.masked_from};
    dims expected = dims::filled(std::clamp(rank, least, whole.rank()), 1);
    for (int d = 1; d <= expected.rank(); ++d) {
        const bool broadcasts = d <= rank && mask.end()[-d] == 1 && (d > 2 || is_by_onnx);
        if (!broadcasts) expected.end()[-d] = whole.end()[-d];
    }
    expect_shape("attn_mask", mask, expected);
}

void check_lengths(const onnx_inputs& in) {
    if (!in.is_given(in.lengths)) return;
    expect_shape("nonpad_kv_seqlen", in.lengths.desc.extents, {in.batch()});
    if (in.is_given(in.past_key))
        throw argument_error("Maskwise: both nonpad_kv_seqlen and past_key are given");
    for (std::int64_t b = 0; b < in.batch(); ++b)
        if (const auto length = static_cast<const std::int64_t*>(in.lengths.data)[b];
            length < 0 || length > in.all_keys())
            throw argument_error("Maskwise: nonpad_kv_seqlen[" + std::to_string(b) + "] is " +
                                 std::to_string(length) + ", the keys are " +
                                 std::to_string(in.all_keys()));
}

void describe_by_heads(onnx_inputs& in, const attention_settings& settings) {
    const int rank = in.query.desc.extents.rank();
    for (const auto& [name, input] : {std::pair("K", &in.key), std::pair("V", &in.value)})
        if (input->desc.extents.rank() != rank)
            throw shape_error("Maskwise: Q is " + to_string(in.query.desc.extents) + ", " + name +
                              ' ' + to_string(input->desc.extents));
    const std::int64_t key_heads = heads_of("kv_num_heads", in.key.desc, settings.key_heads);
    in.queries =
        by_heads("Q", in.query.desc, heads_of("q_num_heads", in.query.desc, settings.query_heads));
    in.keys = by_heads("K", in.key.desc, key_heads);
    in.values = by_heads("V", in.value.desc, key_heads);
    const dims &query = in.queries.extents, &key = in.keys.extents;
    require_elements("Q", in.query.desc);
    require_elements("K", in.key.desc);
    require_elements("V", in.value.desc);
    expect_shape("K by heads", key, {query[0], -1, -1, query[3]});
    expect_shape("V by heads", in.values.extents, {key[0], key[1], key[2], -1});
    if (query[1] % key[1] != 0)
        throw shape_error("Maskwise: " + std::to_string(query[1]) + " heads of Q for " +
                          std::to_string(key[1]) + " of K");
}

onnx_inputs read_inputs(const runtime& with, const call& at, const attention_settings& settings) {
    onnx_inputs in{at.input(0),          at.input(1),          at.input(2),
                   at.optional_input(3), at.optional_input(4), at.optional_input(5),
                   at.optional_input(6)};
    describe_by_heads(in, settings);
    check_past(in);
    if (in.is_given(in.past_key)) in.past = in.past_key.desc.extents[2];
    read_mask(in, with, settings.pads_mask);
    check_lengths(in);
    return in;
}

// A single row behind earlier keys keeps all, whatever follows.
bool is_causal(const runtime& with, const attention_settings& settings, const onnx_inputs& in) {
    const bool is_next = in.rows() == 1 && (in.past > 0 || masks_by_lowest(with));
    return settings.is_causal && !is_next;
}

void describe_rules(attention_work& work, const runtime& with, const attention_settings& settings,
                    const onnx_inputs& in) {
    work.rules.causal = is_causal(with, settings, in);
    work.rules.offsets = {in.past};
    if (!in.is_given(in.lengths)) return;
    const auto* const lengths = static_cast<const std::int64_t*>(in.lengths.data);
    work.rules.lengths.assign(lengths, lengths + in.batch());
    work.rules.offsets.clear();
    for (const std::int64_t length : work.rules.lengths)
        work.rules.offsets.push_back(length - in.rows());
    for (std::int64_t& length : work.rules.lengths) length = std::min(length, in.masked_from);
}

void describe_mask(attention_work& work, const runtime& with, const onnx_inputs& in) {
    attention_desc& desc = work.desc;
    if (masks_by_lowest(with)) {
        desc.fill = std::numeric_limits<float>::lowest();
        desc.inf_as_zero = false;
    }
    if (!in.is_given(in.mask)) return;
    const bool keeps = in.mask.desc.type == data_type::boolean;
    (keeps ? desc.cond : desc.bias) = in.mask.desc;
    (keeps ? work.at.cond : work.at.bias) = in.mask.data;
    work.lowest_masks = !keeps && !masks_by_lowest(with);
}

void describe_result(attention_work& work, const call& at, const onnx_inputs& in) {
    const dims& query = in.queries.extents;
    const std::int64_t columns = in.values.extents[3];
    tensor_desc dst{in.query.desc.type, {query[0], query[1], query[2], columns}};
    if (in.query.desc.extents.rank() == 3) dst.extents = {query[0], query[2], query[1] * columns};
    work.at.dst = at.output_data(dst.extents);
    work.desc.dst = by_heads("Y", dst, query[1]);
}

} // namespace

attention_work begin_onnx_attention(const runtime& with, const call& at,
                                    const attention_settings& settings, const parallel_loop& loop) {
    const onnx_inputs in = read_inputs(with, at, settings);
    attention_work work = begin_work({in.queries, in.query.data}, {in.keys, in.key.data},
                                     {in.values, in.value.data}, settings);
    work.desc.grouped_queries = in.queries.extents[1] != in.keys.extents[1];
    describe_result(work, at, in);
    const auto sequences = static_cast<std::size_t>(in.batch());
    keep_for_next(work, at, {in.past, in.all_keys(), std::vector(sequences, in.past)}, in.past_key,
                  in.past_value, loop);
    for (tensor_desc* const all : {&work.desc.key, &work.desc.value})
        all->extents[2] = in.masked_from;
    describe_rules(work, with, settings, in);
    describe_mask(work, with, in);
    return work;
}

} // namespace maskwise::ort
