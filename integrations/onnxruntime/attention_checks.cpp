#include "attention_checks.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::ort {
namespace {

void expect_shape(const operand& operand, const dims& expected) {
    if (operand.is_given && operand.extents)
        ort::expect_shape(operand.name, *operand.extents, expected);
}

// Refuses an operand with an extent of 0.
void require_elements(const operand& operand) {
    if (operand.extents && std::ranges::find(*operand.extents, 0) != operand.extents->end())
        refuse_shape(std::string(operand.name) + " of shape " + to_string(*operand.extents) +
                     " has no elements");
}

// Converts the shape {batch, rows, heads * depth} to {batch, heads, rows, depth}. Returns a shape
// of four dimensions unchanged.
dims by_heads(std::string_view name, const operand& operand, std::int64_t heads) {
    if (!operand.extents) return {-1, -1, -1, -1};
    const dims& whole = *operand.extents;
    if (whole.rank() == 4) return whole;
    if (whole.rank() != 3 || heads < 1 || (whole[2] >= 0 && whole[2] % heads != 0))
        refuse_shape(std::string(name) + " is " + to_string(whole) + " with " +
                     std::to_string(heads) +
                     " heads, expected 4 dimensions, or 3 dimensions whose last is a multiple of "
                     "the heads");
    return {whole[0], heads, whole[1], whole[2] < 0 ? -1 : whole[2] / heads};
}

[[noreturn]] void refuse_type(const operand& operand) {
    refuse(std::string(operand.name) + " has the unsupported type " +
           std::string(to_string(operand.type)));
}

void check_types(const attention_operator& op, const attention_inputs& inputs) {
    const data_type type = inputs[role::query].type;
    for (const role r : {role::key, role::value, role::projection_bias, role::bias, role::past_key,
                         role::past_value, role::cosines, role::sines})
        if (inputs[r].is_given && inputs[r].type != type) refuse_type(inputs[r]);
    const operand &mask = inputs[role::mask], &positions = inputs[role::positions];
    if (op.kind == attention_kind::onnx && mask.is_given && mask.type != data_type::boolean &&
        mask.type != type)
        refuse_type(mask);
    if (positions.is_given && positions.type != data_type::i64) refuse_type(positions);
}

void check_given(const attention_operator& op, const attention_inputs& inputs) {
    const bool has_past = inputs[role::past_key].is_given || inputs[role::past_value].is_given;
    if (!inputs.unsupported.empty()) refuse(inputs.unsupported);
    if (inputs.has_scores) refuse("the scores are an output");
    if (has_past && !(inputs[role::past_key].is_given && inputs[role::past_value].is_given &&
                      inputs.has_present))
        refuse("past_key, past_value, present_key or present_value is missing");
    if (op.kind != attention_kind::group_query) return;
    if (!inputs.has_present) refuse("no present_key or present_value");
    if (inputs[role::key].is_given != inputs[role::value].is_given)
        refuse("one of key and value is missing");
}

// Checks the past and sets shape.past. In MultiHeadAttention, an empty past_value may have any
// depth.
void check_past(const attention_operator& op, const attention_inputs& inputs,
                attention_shape& shape) {
    const operand& keys = inputs[role::past_key];
    if (!keys.is_given) return;
    expect_shape(keys, {shape.batch(), shape.key[1], -1, shape.key[3]});
    shape.past = keys.extents ? (*keys.extents)[2] : -1;
    const bool any_depth = op.kind == attention_kind::multi_head && shape.past == 0;
    expect_shape(inputs[role::past_value],
                 {shape.batch(), shape.key[1], shape.past, any_depth ? -1 : shape.value[3]});
}

void check_heads(const attention_shape& shape) {
    const std::int64_t query = shape.query[1], key = shape.key[1];
    if (query >= 0 && key >= 0 && (key == 0 || query % key != 0))
        refuse_shape("query has " + std::to_string(query) +
                     " heads, expected a multiple of the key's " + std::to_string(key));
}

// ONNX's Attention

// If set, the attribute must equal a 4-D operand's number of heads.
dims onnx_heads(const char* attribute, const operand& operand, std::int64_t heads) {
    if (operand.rank() == 4 && heads > 0 && (*operand.extents)[1] >= 0 &&
        heads != (*operand.extents)[1])
        refuse_shape(std::string(attribute) + " is " + std::to_string(heads) + ", but " +
                     std::string(operand.name) + " is " + to_string(*operand.extents));
    return by_heads(operand.name, operand, heads);
}

// Checks the mask and sets shape.masked_from. ONNX broadcasts every dimension of a mask. ONNX
// Runtime before 1.28 broadcasts only the dimensions before the last two. With `pads`, ONNX Runtime
// 1.28 and newer masks the keys past the mask's last column.
void check_onnx_mask(const runtime& api, const operand& mask, bool pads, attention_shape& shape) {
    shape.masked_from = shape.all_keys();
    if (!mask.is_given || !mask.extents) return;
    const bool is_by_onnx = !masks_by_lowest(api);
    const dims& extents = *mask.extents;
    const int rank = extents.rank(), least = is_by_onnx ? 1 : 2;
    const std::int64_t columns = rank == 0 ? 1 : extents[rank - 1];
    if (is_by_onnx && pads) shape.masked_from = std::min(columns, shape.all_keys());
    const dims whole{shape.batch(), shape.query[1], shape.rows(), shape.masked_from};
    dims expected = dims::filled(std::clamp(rank, least, whole.rank()), 1);
    for (int d = 1; d <= expected.rank(); ++d) {
        const bool broadcasts = d <= rank && extents.end()[-d] == 1 && (d > 2 || is_by_onnx);
        if (!broadcasts) expected.end()[-d] = whole.end()[-d];
    }
    expect_shape(mask, expected);
}

attention_shape check_onnx(const runtime& api, const attention_operator& op,
                           const attention_inputs& inputs, const attention_settings& settings) {
    const operand &query = inputs[role::query], &key = inputs[role::key],
                  &value = inputs[role::value];
    for (const operand* const other : {&key, &value})
        if (query.extents && other->extents && query.rank() != other->rank())
            refuse_shape("Q is " + to_string(*query.extents) + ", but " + std::string(other->name) +
                         " is " + to_string(*other->extents));
    attention_shape shape{onnx_heads(op.query_heads, query, settings.query_heads),
                          onnx_heads(op.key_heads, key, settings.key_heads),
                          onnx_heads(op.key_heads, value, settings.key_heads)};
    for (const operand* const each : {&query, &key, &value}) require_elements(*each);
    ort::expect_shape("K split into heads", shape.key, {shape.batch(), -1, -1, shape.query[3]});
    ort::expect_shape("V split into heads", shape.value,
                      {shape.key[0], shape.key[1], shape.key[2], -1});
    check_heads(shape);
    check_past(op, inputs, shape);
    check_onnx_mask(api, inputs[role::mask], settings.pads_mask, shape);
    expect_shape(inputs[role::lengths], {shape.batch()});
    if (inputs[role::lengths].is_given && inputs[role::past_key].is_given)
        refuse("both past_key and nonpad_kv_seqlen are given");
    return shape;
}

// MultiHeadAttention

// A 1-D integer mask holds one length per sequence, or 3 * batch + 2 numbers that begin with the
// lengths. A 2-D or 3-D mask is above 0 for each unmasked key.
void check_padding(const operand& mask, const attention_shape& shape) {
    if (!mask.is_given || !mask.extents) return;
    const dims& extents = *mask.extents;
    const std::int64_t batch = shape.batch(), keys = shape.all_keys();
    if (extents.rank() == 2) return expect_shape(mask, {batch, keys});
    if (extents.rank() != 1) return expect_shape(mask, {batch, shape.rows(), keys});
    if (batch >= 0 && extents[0] != batch) expect_shape(mask, {3 * batch + 2});
}

void check_bias(const operand& bias, const attention_shape& shape) {
    if (!bias.is_given || !bias.extents) return;
    dims expected{shape.batch(), shape.query[1], shape.rows(), shape.all_keys()};
    for (int d = 0; d < std::min(bias.rank(), 2); ++d)
        if ((*bias.extents)[d] == 1) expected[d] = 1;
    expect_shape(bias, expected);
}

attention_shape check_multi_head(const attention_operator& op, const attention_inputs& inputs,
                                 const attention_settings& settings) {
    const operand &query = inputs[role::query], &key = inputs[role::key],
                  &value = inputs[role::value];
    if (!key.is_given || !value.is_given) refuse("key or value is missing or packed");
    if (inputs[role::mask].is_given && inputs[role::bias].is_given)
        refuse("both key_padding_mask and attention_bias are given");
    if (settings.is_causal && inputs[role::bias].is_given)
        refuse("both unidirectional and attention_bias are given");
    const std::int64_t heads = settings.query_heads;
    expect_shape(query, {-1, -1, -1});
    attention_shape shape{by_heads(query.name, query, heads), by_heads(key.name, key, heads),
                          by_heads(value.name, value, heads)};
    if (key.extents && value.extents && key.rank() != value.rank())
        refuse_shape("key is " + to_string(*key.extents) + ", but value is " +
                     to_string(*value.extents));
    ort::expect_shape("key split into heads", shape.key,
                      {shape.batch(), shape.query[1], -1, shape.query[3]});
    ort::expect_shape("value split into heads", shape.value,
                      {shape.batch(), shape.query[1], shape.key[2], -1});
    if (key.rank() == 4) expect_shape(value, *key.extents);
    const std::int64_t depths[] = {shape.query[3], shape.key[3], shape.value[3]};
    if (std::ranges::min(depths) >= 0)
        expect_shape(inputs[role::projection_bias], {heads * (depths[0] + depths[1] + depths[2])});
    check_past(op, inputs, shape);
    check_padding(inputs[role::mask], shape);
    check_bias(inputs[role::bias], shape);
    return shape;
}

// GroupQueryAttention

void check_rotary(const attention_inputs& inputs, bool rotates) {
    const bool cosines = inputs[role::cosines].is_given, sines = inputs[role::sines].is_given;
    if (rotates && !(cosines && sines)) refuse("do_rotary without cos_cache or sin_cache");
    if (!rotates && (cosines || sines || inputs[role::positions].is_given))
        refuse("cos_cache, sin_cache or position_ids without do_rotary");
}

// Without a key input, the query input holds the query heads, then the key and value heads.
attention_shape group_query_shape(const attention_inputs& inputs,
                                  const attention_settings& settings) {
    const operand &query = inputs[role::query], &key = inputs[role::key],
                  &value = inputs[role::value];
    for (const operand* const each : {&query, &key, &value}) expect_shape(*each, {-1, -1, -1});
    const std::int64_t heads = settings.query_heads, key_heads = settings.key_heads;
    if (key.is_given)
        return {by_heads(query.name, query, heads), by_heads(key.name, key, key_heads),
                by_heads(value.name, value, key_heads)};
    const dims packed = by_heads("packed query", query, heads + 2 * key_heads);
    attention_shape shape{packed, packed, packed};
    shape.query[1] = heads;
    shape.key[1] = shape.value[1] = key_heads;
    return shape;
}

attention_shape check_group_query(const attention_operator& op, const attention_inputs& inputs,
                                  const attention_settings& settings) {
    constexpr std::int64_t unit = 8; // ONNX Runtime supports only depths that are multiples of 8
    for (const role r : {role::query, role::lengths, role::total})
        if (!inputs[r].is_given) refuse(std::string(inputs[r].name) + " is missing");
    check_rotary(inputs, settings.rotates);
    attention_shape shape = group_query_shape(inputs, settings);
    const dims &query = shape.query, &key = shape.key;
    require_elements(inputs[role::query]);
    ort::expect_shape("key split into heads", key,
                      {query[0], -1, key[2] == 0 ? 0 : query[2], query[3]});
    ort::expect_shape("value split into heads", shape.value, key);
    check_heads(shape);
    if (query[3] >= 0 && query[3] % unit != 0)
        refuse_shape("query split into heads is " + to_string(query) +
                     ", its depth must be a multiple of " + std::to_string(unit));
    check_past(op, inputs, shape);
    const operand& total = inputs[role::total];
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
                     to_string(expected) + ", where -1 is any extent");
}

attention_shape check_operands(const runtime& api, const attention_operator& op,
                               const attention_inputs& inputs, const attention_settings& settings) {
    check_types(op, inputs);
    check_given(op, inputs);
    if (op.kind != attention_kind::onnx)
        for (const auto& [name, heads] : {std::pair(op.query_heads, settings.query_heads),
                                          std::pair(op.key_heads, settings.key_heads)})
            if (heads < 1)
                refuse(std::string(name) + " is " + std::to_string(heads) +
                       ", expected at least 1");
    switch (op.kind) {
    case attention_kind::onnx:
        return check_onnx(api, op, inputs, settings);
    case attention_kind::multi_head:
        return check_multi_head(op, inputs, settings);
    default:
        return check_group_query(op, inputs, settings);
    }
}

} // namespace maskwise::ort
