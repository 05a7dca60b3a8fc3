#include "multi_head_attention.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace maskwise::ort {
namespace {

struct multi_head_inputs {
    input_tensor query, key, value, added, mask, bias, past_key, past_value;
    tensor_desc queries{}, keys{}, values{}; // by heads
    std::int64_t past = 0;                   // rows

    std::int64_t batch() const { return queries.extents[0]; }
    std::int64_t rows() const { return queries.extents[2]; }
    std::int64_t all_keys() const { return past + keys.extents[2]; }
};

bool is_given(const input_tensor& which) {
    return which.theirs != nullptr;
}

void check_shapes(const multi_head_inputs& in) {
    const dims &query = in.queries.extents, &key = in.keys.extents, &value = in.values.extents;
    expect_shape("query", in.query.desc.extents, {-1, -1, -1});
    const int rank = in.key.desc.extents.rank();
    if (rank != in.value.desc.extents.rank())
        throw shape_error("Maskwise: key is " + to_string(in.key.desc.extents) + ", value " +
                          to_string(in.value.desc.extents));
    expect_shape("key by heads", key, {query[0], query[1], -1, query[3]});
    expect_shape("value by heads", value, {query[0], query[1], key[2], -1});
    if (is_given(in.added))
        expect_shape("bias", in.added.desc.extents, {query[1] * (query[3] + key[3] + value[3])});
    if (rank == 4) expect_shape("value", in.value.desc.extents, key);
    if (is_given(in.past_key) != is_given(in.past_value))
        throw argument_error("Maskwise: one of past_key and past_value is missing");
    if (!is_given(in.past_key)) return;
    const dims& past = in.past_key.desc.extents;
    expect_shape("past_key", past, {query[0], query[1], -1, query[3]});
    const std::int64_t columns = past[2] == 0 ? -1 : value[3]; // of none, any
    expect_shape("past_value", in.past_value.desc.extents, {query[0], query[1], past[2], columns});
}

void check_bias(const multi_head_inputs& in) {
    if (!is_given(in.bias)) return;
    const dims& bias = in.bias.desc.extents;
    dims expected{in.batch(), in.queries.extents[1], in.rows(), in.all_keys()};
    for (int d = 0; d < std::min(bias.rank(), 2); ++d)
        if (bias[d] == 1) expected[d] = 1;
    expect_shape("attention_bias", bias, expected);
}

multi_head_inputs read_inputs(const call& at, const attention_settings& settings) {
    multi_head_inputs in{at.input(0),          at.input(1),          at.input(2),
                         at.optional_input(3), at.optional_input(4), at.optional_input(5),
                         at.optional_input(6), at.optional_input(7)};
    in.queries = by_heads("query", in.query.desc, settings.query_heads);
    in.keys = by_heads("key", in.key.desc, settings.query_heads);
    in.values = by_heads("value", in.value.desc, settings.query_heads);
    check_shapes(in);
    if (is_given(in.past_key)) in.past = in.past_key.desc.extents[2];
    check_bias(in);
    return in;
}

// Numbers that are added to each row of a query, key or value, which then is the work's.
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

void add_bias(attention_work& work, const multi_head_inputs& in) {
    if (!is_given(in.added)) return;
    const auto* numbers = static_cast<const float*>(in.added.data);
    const std::int64_t width = in.queries.extents[1] * in.queries.extents[3];
    add_numbers(work, work.desc.query, work.at.query, numbers);
    // Projected before, with the bias of theirs: an encoder's.
    if (in.key.desc.extents.rank() == 4) return;
    add_numbers(work, work.desc.key, work.at.key, numbers + width);
    add_numbers(work, work.desc.value, work.at.value, numbers + 2 * width);
}

// A mask of whole numbers: lengths of the sequences, which may have others behind them, or above 0
// where a key counts.
void add_mask(attention_work& work, const multi_head_inputs& in, float masked) {
    if (!is_given(in.mask)) return;
    const dims& shape = in.mask.desc.extents;
    const std::int64_t batch = in.batch(), keys = in.all_keys();
    const bool has_lengths = shape.rank() == 1;
    const std::int64_t rows = shape.rank() == 3 ? in.rows() : 1;
    if (has_lengths && shape[0] != batch) expect_shape("key_padding_mask", shape, {3 * batch + 2});
    if (shape.rank() == 2) expect_shape("key_padding_mask", shape, {batch, keys});
    if (!has_lengths && shape.rank() != 2)
        expect_shape("key_padding_mask", shape, {batch, rows, keys});
    const auto* const given = static_cast<const std::int32_t*>(in.mask.data);
    std::vector<float>& bias =
        work.made.emplace_back(static_cast<std::size_t>(batch * rows * keys));
    for (std::int64_t b = 0, at = 0; b < batch; ++b)
        for (std::int64_t key = 0; key < rows * keys; ++key, ++at) {
            const bool counts = has_lengths ? key < given[b] : given[at] > 0;
            bias[static_cast<std::size_t>(at)] = counts ? 0 : masked;
        }
    work.desc.bias = {data_type::f32, {batch, 1, rows, keys}};
    work.at.bias = bias.data();
}

void describe_result(attention_work& work, const call& at, const multi_head_inputs& in) {
    const dims& query = in.queries.extents;
    const tensor_desc dst{data_type::f32, {query[0], query[2], query[1] * in.values.extents[3]}};
    work.at.dst = at.output_data(dst.extents);
    work.desc.dst = by_heads("output", dst, query[1]);
}

} // namespace

attention_work begin_multi_head_attention(const runtime&, const call& at,
                                          const attention_settings& settings,
                                          const parallel_loop& loop) {
    const multi_head_inputs in = read_inputs(at, settings);
    attention_work work = begin_work({in.queries, in.query.data}, {in.keys, in.key.data},
                                     {in.values, in.value.data}, settings);
    work.desc.fill = std::numeric_limits<float>::lowest();
    work.desc.inf_as_zero = false;
    describe_result(work, at, in);
    add_bias(work, in);
    const auto sequences = static_cast<std::size_t>(in.batch());
    keep_for_next(work, at, {in.past, in.all_keys(), std::vector(sequences, in.past)}, in.past_key,
                  in.past_value, loop);
    add_mask(work, in, settings.masked);
    if (is_given(in.bias)) {
        work.desc.bias = in.bias.desc;
        work.at.bias = in.bias.data;
    }
    work.rules.causal = settings.is_causal && in.rows() > 1;
    work.rules.offsets = {in.past};
    work.last_row_keeps_all = work.rules.causal && in.keys.extents[2] > in.rows();
    return work;
}

} // namespace maskwise::ort
