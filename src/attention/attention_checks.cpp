#include "attention/attention_checks.hpp"

#include "attention/row_spans.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/collapse.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise {
namespace {

constexpr const char* floats = "f32, bf16 or f16";

void require_type(const char* name, data_type type, bool is_legal, const char* expected) {
    if (!is_legal)
        throw argument_error(std::string("attention: ") + name + " is " +
                             std::string(to_string(type)) + ", expected " + expected);
}

void require_type_or_none(const char* name, data_type type, bool is_legal, const char* expected) {
    require_type(name, type, is_legal || type == data_type::undef, expected);
}

void check_types(const attention_desc& desc) {
    const data_type type = desc.query.type, statistics = desc.statistics.type;
    require_type("query", type, computes_in_f32(type), floats);
    require_type("key", desc.key.type, desc.key.type == type, "query's type");
    require_type("value", desc.value.type, desc.value.type == type, "query's type");
    require_type_or_none("cond", desc.cond.type, desc.cond.type == data_type::boolean, "boolean");
    require_type_or_none("bias", desc.bias.type, computes_in_f32(desc.bias.type), floats);
    require_type_or_none("sinks", desc.sinks.type, computes_in_f32(desc.sinks.type), floats);
    require_type_or_none("page_table", desc.page_table.type, desc.page_table.type == data_type::i32,
                         "i32");
    require_type_or_none("dst", desc.dst.type, computes_in_f32(desc.dst.type), floats);
    require_type_or_none("statistics", statistics, statistics == data_type::f32, "f32");
    require_type("weights_type", desc.weights_type, computes_in_f32(desc.weights_type), floats);
}

void complete(const char* name, tensor_desc& operand) {
    if (operand.type == data_type::undef) return;
    require_no_negative(operand.extents, "attention", name);
    fill_in_strides(operand);
    if (operand.strides_bytes.rank() != operand.extents.rank())
        throw argument_error(std::string("attention: ") + name + " of shape " +
                             to_string(operand.extents) + " has strides " +
                             to_string(operand.strides_bytes));
    span_bytes(operand); // throws on overflow
}

void require_rank(const char* name, const tensor_desc& operand, int least) {
    if (operand.extents.rank() < least)
        throw shape_error(std::string("attention: ") + name + " of shape " +
                          to_string(operand.extents) + " has fewer than " + std::to_string(least) +
                          " dimensions");
}

[[noreturn]] void refuse_pair(const char* name, const tensor_desc& one, const char* other_name,
                              const tensor_desc& other, const char* why) {
    throw shape_error(std::string("attention: ") + name + ' ' + to_string(one.extents) + " and " +
                      other_name + ' ' + to_string(other.extents) + ": " + why);
}

// Returns all extents except the last two. With grouped_queries, the last returned extent is
// query's number of heads.
dims outer_of(const char* name, const tensor_desc& operand, const attention_desc& desc) {
    dims outer = without_last(operand.extents, 2);
    if (!desc.grouped_queries) return outer;
    const std::int64_t operand_heads = heads_of(operand), heads = heads_of(desc.query);
    if (operand_heads == 0 ? heads != 0 : heads % operand_heads != 0)
        refuse_pair("query", desc.query, name, operand, "the heads are no multiple");
    outer[outer.rank() - 1] = heads;
    return outer;
}

dims broadcast_outer(const attention_desc& desc) {
    const auto join = [&](const dims& outer, const char* name, const tensor_desc& operand) {
        const auto joined = broadcast_numpy(outer, outer_of(name, operand, desc));
        if (!joined) refuse_pair("query", desc.query, name, operand, "these do not broadcast");
        return *joined;
    };
    dims outer = outer_of("query", desc.query, desc);
    outer = join(outer, "key", desc.key);
    return join(outer, "value", desc.value);
}

void require_shape(const char* name, const dims& actual, const dims& expected) {
    if (actual != expected)
        throw shape_error(std::string("attention: ") + name + " is " + to_string(actual) +
                          ", expected " + to_string(expected));
}

void check_pages(const attention_desc& desc) {
    const dims &table = desc.page_table.extents, &key = desc.key.extents,
               &value = desc.value.extents;
    if (table.rank() != 2 || desc.query.extents.rank() != 4 || key.rank() != 4 ||
        value.rank() != 4 || table[0] != desc.query.extents[0])
        refuse_pair("query", desc.query, "page_table", desc.page_table,
                    "expected {sequences, heads, rows, depth} and {sequences, pages}, and key and "
                    "value of 4 dimensions");
    if (key[0] != value[0] || key[2] != value[2] || key[2] == 0)
        refuse_pair("key", desc.key, "value", desc.value,
                    "expected the same pages of 1 key or more");
    if (desc.order == attention_order::operators || !std::isinf(desc.fill) || desc.fill > 0)
        throw argument_error(
            "attention: a page_table needs order tiles or fixed, and a fill of -infinity; "
            "the fill is " +
            std::to_string(desc.fill));
}

// Replaces {pages, keys per page} in a cache's shape by {sequences, keys per sequence}.
void join_pages(const dims& table, tensor_desc& operand) {
    const auto keys = checked_multiply(table[1], operand.extents[2]);
    if (!keys)
        throw shape_error("attention: a page_table of " + to_string(table) + " for pages of " +
                          std::to_string(operand.extents[2]) + " keys is too large");
    operand.extents[0] = table[0];
    operand.extents[2] = *keys;
}

void check_inputs(const attention_desc& desc) {
    const int least = desc.grouped_queries ? 3 : 2;
    require_rank("query", desc.query, least);
    require_rank("key", desc.key, least);
    require_rank("value", desc.value, least);
    if (desc.query.extents.end()[-1] != desc.key.extents.end()[-1])
        refuse_pair("query", desc.query, "key", desc.key, "the depths differ");
    if (desc.key.extents.end()[-2] != desc.value.extents.end()[-2])
        refuse_pair("key", desc.key, "value", desc.value, "the numbers of keys differ");
    if (desc.order > attention_order::fixed)
        throw argument_error("attention: order has the unknown value " +
                             std::to_string(static_cast<int>(desc.order)));
    if (std::isnan(desc.soft_cap) || std::isinf(desc.soft_cap))
        throw argument_error("attention: soft_cap is " + std::to_string(desc.soft_cap));
}

void check_masks(const attention_desc& desc, dims scores) {
    const int rank = scores.rank();
    scores[rank - 1] = desc.key.extents.end()[-2];
    if (desc.cond.type != data_type::undef) require_one_way(desc.cond.extents, scores, "cond");
    if (desc.bias.type != data_type::undef) require_one_way(desc.bias.extents, scores, "bias");
    if (desc.sinks.type != data_type::undef)
        require_one_way(desc.sinks.extents, without_last(scores, 2), "sinks");
}

void complete_outputs(attention_desc& desc) {
    dims shape = broadcast_outer(desc);
    shape.push_back(desc.query.extents.end()[-2]);
    const dims statistics = shape;
    shape.push_back(desc.value.extents.end()[-1]);
    check_masks(desc, shape);
    if (desc.dst.type == data_type::undef) desc.dst = {desc.query.type, shape};
    require_shape("dst", desc.dst.extents, shape);
    if (desc.statistics.type != data_type::undef)
        require_shape("statistics", desc.statistics.extents, statistics);
}

} // namespace

// Newton's method, because the library does not link libm. 64 steps suffice: far from the root,
// each step halves the value.
float default_scale(std::int64_t depth) {
    const auto square = static_cast<double>(depth);
    double root = std::max(square, 1.0);
    for (int i = 0; i < 64; ++i) root = (root + square / root) / 2;
    return static_cast<float>(1 / root);
}

void require_addresses(const attention_desc& desc, const attention_operands& addresses) {
    const void* const pointers[] = {addresses.query,      addresses.key,  addresses.value,
                                    addresses.cond,       addresses.bias, addresses.sinks,
                                    addresses.page_table, addresses.dst,  addresses.statistics};
    for (std::size_t i = 0; i < named_operands.size(); ++i) {
        const tensor_desc& operand = desc.*named_operands[i].desc;
        if (pointers[i] != nullptr || operand.type == data_type::undef ||
            std::ranges::count(operand.extents, 0) > 0)
            continue;
        throw argument_error(std::string("attention: the address of ") + named_operands[i].name +
                             " is null, its shape is " + to_string(operand.extents));
    }
}

std::int64_t heads_of(const tensor_desc& operand) {
    return operand.extents.rank() > 2 ? operand.extents.end()[-3] : 1;
}

std::int64_t sequences_of(const attention_desc& desc) {
    return desc.dst.extents.rank() > 2 ? desc.dst.extents[0] : 1;
}

attention_desc checked_attention(attention_desc desc) {
    check_types(desc);
    for (const auto& [name, operand] : std::span(named_operands).first(input_count))
        complete(name, desc.*operand);
    if (desc.page_table.type != data_type::undef) {
        check_pages(desc);
        join_pages(desc.page_table.extents, desc.key);
        join_pages(desc.page_table.extents, desc.value);
    }
    check_inputs(desc);
    complete_outputs(desc);
    // An output's elements must not overlap, because threads write an output concurrently.
    for (const auto& [name, operand] : std::span(named_operands).subspan(input_count)) {
        complete(name, desc.*operand);
        if ((desc.*operand).type != data_type::undef)
            require_apart(desc.*operand, std::string("attention: ") + name);
    }
    desc.inf_as_zero |= desc.nan_as_zero;
    if (!desc.scale) desc.scale = default_scale(desc.query.extents.end()[-1]);
    return desc;
}

void require_rules(const attention_desc& desc, const mask_rules* rules) {
    if (rules == nullptr) return;
    check_rules(*rules, sequences_of(desc));
    check_slopes(*rules, sequences_of(desc), heads_of(desc.dst));
    if (!rules->slopes.empty() && desc.bias.type != data_type::undef)
        throw argument_error("attention: slopes and a bias exclude each other");
}

} // namespace maskwise
