#include "attention_checks.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::ort {
namespace {

void expect_shape(const operand& of, const dims& expected) {
    if (of.is_given && of.extents) ort::expect_shape(of.name, *of.extents, expected);
}

// Known to be empty.
void require_elements(const operand& of) {
    if (of.extents && std::ranges::find(*of.extents, 0) != of.extents->end())
        refuse_shape(std::string(of.name) + " of shape " + to_string(*of.extents) +
                     " has no element");
}

// {batch, rows, heads * depth} as {batch, heads, rows, depth}; four dimensions stay.
dims by_heads(std::string_view name, const operand& of, std::int64_t heads) {
    if (!of.extents) return {-1, -1, -1, -1};
    const dims& all = *of.extents;
    if (all.rank() == 4) return all;
    if (all.rank() != 3 || heads < 1 || (all[2] >= 0 && all[2] % heads != 0))
        refuse_shape(std::string(name) + " is " + to_string(all) + " with " +
                     std::to_string(heads) + " heads");
    return {all[0], heads, all[1], all[2] < 0 ? -1 : all[2] / heads};
}

[[noreturn]] void refuse_type(const operand& of) {
    refuse(std::string(of.name) + " of " + std::string(to_string(of.type)));
}

void check_types(const attention_operator& of, const attention_inputs& in) {
    const data_type type = in[role::query].type;
    for (const role which : {role::key, role::value, role::added, role::bias, role::past_key,
                             role::past_value, role::cosines, role::sines})
        if (in[which].is_given && in[which].type != type) refuse_type(in[which]);
    const operand &mask = in[role::mask], &positions = in[role::positions];
    if (of.kind == attention_kind::onnx && mask.is_given && mask.type != data_type::boolean &&
        mask.type != type)
        refuse_type(mask);
    if (positions.is_given && positions.type != data_type::i64) refuse_type(positions);
}

void check_given(const attention_operator& of, const attention_inputs& in) {
    const bool has_past = in[role::past_key].is_given || in[role::past_value].is_given;
    if (!in.unsupported.empty()) refuse(in.unsupported);
    if (in.has_scores) refuse("the scores are an output");
    if (has_past &&
        !(in[role::past_key].is_given && in[role::past_value].is_given && in.has_present))
        refuse("past_key, past_value and both results of them are not all there");
    if (of.kind != attention_kind::group_query) return;
    if (!in.has_present) refuse("no present_key or present_value");
    if (in[role::key].is_given != in[role::value].is_given)
        refuse("one of key and value is missing");
}

// Rows and depth of values; of a past without rows MultiHeadAttention's may have any depth.
void check_past(const attention_operator& of, const attention_inputs& in, attention_shape& shape) {
    const operand& keys = in[role::past_key];
    if (!keys.is_given) return;
    expect_shape(keys, {shape.batch(), shape.key[1], -1, shape.key[3]});
    shape.past = keys.extents ? (*keys.extents)[2] : -1;
    const bool any = of.kind == attention_kind::multi_head && shape.past == 0;
    expect_shape(in[role::past_value],
                 {shape.batch(), shape.key[1], shape.past, any ? -1 : shape.value[3]});
}

void check_heads(const attention_shape& shape) {
    const std::int64_t query = shape.query[1], key = shape.key[1];
    if (query >= 0 && key >= 0 && (key == 0 || query % key != 0))
        refuse_shape(std::to_string(query) + " heads of the query for " + std::to_string(key) +
                     " of the key");
}

// ONNX's Attention

// Of four dimensions; the attribute may repeat what the shape says.
dims onnx_heads(const char* attribute, const operand& of, std::int64_t heads) {
    if (of.rank() == 4 && heads > 0 && (*of.extents)[1] >= 0 && heads != (*of.extents)[1])
        refuse_shape(std::string(attribute) + " is " + std::to_string(heads) + ", the shape " +
                     to_string(*of.extents));
    return by_heads(of.name, of, heads);
}

// ONNX broadcasts every dimension of a mask, ONNX Runtime those before the last two. With
// `pads_mask` keys without a column are masked.
void check_onnx_mask(const runtime& with, const operand& mask, bool pads, attention_shape& shape) {
    shape.masked_from = shape.all_keys();
    if (!mask.is_given || !mask.extents) return;
    const bool is_by_onnx = !masks_by_lowest(with); // before, ONNX Runtime's own rules alone
    const dims& given = *mask.extents;
    const int rank = given.rank(), least = is_by_onnx ? 1 : 2;
    const std::int64_t columns = rank == 0 ? 1 : given[rank - 1];
    if (is_by_onnx && pads) shape.masked_from = std::min(columns, shape.all_keys());
    const dims whole{shape.batch(), shape.query[1], shape.rows(), shape.masked_from};
    dims expected = dims::filled(std::clamp(rank, least, whole.rank()), 1);
    for (int d = 1; d <= expected.rank(); ++d) {
        const bool broadcasts = d <= rank && given.end()[-d] == 1 && (d > 2 || is_by_onnx);
        if (!broadcasts) expected.end()[-d] = whole.end()[-d];
    }
    expect_shape(mask, expected);
}

attention_shape check_onnx(const runtime& with, const attention_operator& of,
                           const attention_inputs& in, const attention_settings& settings) {
    const operand &query = in[role::query], &key = in[role::key], &value = in[role::value];
    for (const operand* const other : {&key, &value})
        if (query.extents && other->extents && query.rank() != other->rank())
            refuse_shape("Q is " + to_string(*query.extents) + ", " + std::string(other->name) +
                         ' ' + to_string(*other->extents));
    attention_shape shape{onnx_heads(of.query_heads, query, settings.query_heads),
                          onnx_heads(of.key_heads, key, settings.key_heads),
                          onnx_heads(of.key_heads, value, settings.key_heads)};
    for (const operand* const each : {&query, &key, &value}) require_elements(*each);
    ort::expect_shape("K by heads", shape.key, {shape.batch(), -1, -1, shape.query[3]});
    ort::expect_shape("V by heads", shape.value, {shape.key[0], shape.key[1], shape.key[2], -1});
    check_heads(shape);
    check_past(of, in, shape);
    check_onnx_mask(with, in[role::mask], settings.pads_mask, shape);
    expect_shape(in[role::lengths], {shape.batch()});
    if (in[role::lengths].is_given && in[role::past_key].is_given)
        refuse("both past_key and nonpad_kv_seqlen");
    return shape;
}

// MultiHeadAttention

// Of whole numbers: lengths of the sequences, which others may follow, or more than 0 where a key
// is kept.
void check_padding(const operand& mask, const attention_shape& shape) {
    if (!mask.is_given || !mask.extents) return;
    const dims& given = *mask.extents;
    const std::int64_t batch = shape.batch(), keys = shape.all_keys();
    if (given.rank() == 2) return expect_shape(mask, {batch, keys});
    if (given.rank() != 1) return expect_shape(mask, {batch, shape.rows(), keys});
    if (batch >= 0 && given[0] != batch) expect_shape(mask, {3 * batch + 2});
}

void check_bias(const operand& bias, const attention_shape& shape) {
    if (!bias.is_given || !bias.extents) return;
    dims expected{shape.batch(), shape.query[1], shape.rows(), shape.all_keys()};
    for (int d = 0; d < std::min(bias.rank(), 2); ++d)
        if ((*bias.extents)[d] == 1) expected[d] = 1;
    expect_shape(bias, expected);
}

attention_shape check_multi_head(const attention_operator& of, const attention_inputs& in,
                                 const attention_settings& settings) {
    const operand &query = in[role::query], &key = in[role::key], &value = in[role::value];
    if (!key.is_given || !value.is_given) refuse("keys or values packed into another input");
    if (in[role::mask].is_given && in[role::bias].is_given)
        refuse("both key_padding_mask and attention_bias");
    if (settings.is_causal && in[role::bias].is_given)
        refuse("both unidirectional and attention_bias");
    const std::int64_t heads = settings.query_heads;
    expect_shape(query, {-1, -1, -1});
    attention_shape shape{by_heads(query.name, query, heads), by_heads(key.name, key, heads),
                          by_heads(value.name, value, heads)};
    if (key.extents && value.extents && key.rank() != value.rank())
        refuse_shape("key is " + to_string(*key.extents) + ", value " + to_string(*value.extents));
    ort::expect_shape("key by heads", shape.key,
                      {shape.batch(), shape.query[1], -1, shape.query[3]});
    ort::expect_shape("value by heads", shape.value,
                      {shape.batch(), shape.query[1], shape.key[2], -1});
    if (key.rank() == 4) expect_shape(value, *key.extents);
    const std::int64_t depths[] = {shape.query[3], shape.key[3], shape.value[3]};
    if (std::ranges::min(depths) >= 0)
        expect_shape(in[role::added], {heads * (depths[0] + depths[1] + depths[2])});
    check_past(of, in, shape);
    check_padding(in[role::mask], shape);
    check_bias(in[role::bias], shape);
    return shape;
}

// GroupQueryAttention

void check_rotary(const attention_inputs& in, bool rotates) {
    const bool cosines = in[role::cosines].is_given, sines = in[role::sines].is_given;
    if (rotates && !(cosines && sines)) refuse("do_rotary without cos_cache or sin_cache");
    if (!rotates && (cosines || sines || in[role::positions].is_given))
        refuse("positions without do_rotary");
}

// Without a key the query holds the heads of keys and of values after those of queries.
attention_shape group_query_shape(const attention_inputs& in, const attention_settings& settings) {
    const operand &query = in[role::query], &key = in[role::key], &value = in[role::value];
    for (const operand* const each : {&query, &key, &value}) expect_shape(*each, {-1, -1, -1});
    const std::int64_t heads = settings.query_heads, key_heads = settings.key_heads;
    if (key.is_given)
        return {by_heads(query.name, query, heads), by_heads(key.name, key, key_heads),
                by_heads(value.name, value, key_heads)};
    const dims all = by_heads("packed query", query, heads + 2 * key_heads);
    attention_shape shape{all, all, all};
    shape.query[1] = heads;
    shape.key[1] = shape.value[1] = key_heads;
    return shape;
}

attention_shape check_group_query(const attention_operator& of, const attention_inputs& in,
                                  const attention_settings& settings) {
    constexpr std::int64_t unit = 8; // ONNX Runtime takes no other depths
    for (const role which : {role::query, role::lengths, role::total})
        if (!in[which].is_given) refuse(std::string(in[which].name) + " is missing");
    check_rotary(in, settings.rotates);
    attention_shape shape = group_query_shape(in, settings);
    const dims &query = shape.query, &key = shape.key;
    require_elements(in[role::query]);
    ort::expect_shape("key by heads", key, {query[0], -1, key[2] == 0 ? 0 : query[2], query[3]});
    ort::expect_shape("value by heads", shape.value, key);
    check_heads(shape);
    if (query[3] >= 0 && query[3] % unit != 0)
        refuse_shape("query by heads is " + to_string(query) +
                     ", its depth must be a multiple of " + std::to_string(unit));
    check_past(of, in, shape);
    const operand& total = in[role::total];
    if (total.rank() != 0) expect_shape(total, {1});
    return shape;
}

} // namespace

void refuse(const std::string& why) {
    throw argument_error(std::string(error_prefix) + why);
}

void refuse_shape(const std::string& why) {
    throw shape_error(std::string(error_prefix) + why);
}

void expect_shape(std::string_view name, const dims& actual, const dims& expected) {
    bool fits = actual.rank() == expected.rank();
    for (int d = 0; fits && d < actual.rank(); ++d)
        fits = actual[d] == -1 || expected[d] == -1 || actual[d] == expected[d];
    if (!fits)
        refuse_shape(std::string(name) + " is " + to_string(actual) + ", expected " +
                     to_string(expected) + ", -1 is any");
}

attention_shape check_operands(const runtime& with, const attention_operator& of,
                               const attention_inputs& in, const attention_settings& settings) {
    check_types(of, in);
    check_given(of, in);
    if (of.kind != attention_kind::onnx)
        for (const auto& [name, heads] : {std::pair(of.query_heads, settings.query_heads),
                                          std::pair(of.key_heads, settings.key_heads)})
            if (heads < 1) refuse(std::string(name) + " of " + std::to_string(heads));
    switch (of.kind) {
    case attention_kind::onnx:
        return check_onnx(with, of, in, settings);
    case attention_kind::multi_head:
        return check_multi_head(of, in, settings);
    default:
        return check_group_query(of, in, settings);
    }
}

} // namespace maskwise::ort
