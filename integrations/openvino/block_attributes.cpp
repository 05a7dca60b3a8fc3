#include "block_attributes.hpp"

#include <openvino/core/attribute_adapter.hpp>
#include <openvino/core/except.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace maskwise::openvino {
namespace {

using numbers = std::vector<std::int64_t>;

constexpr const char* causal = "causal";

// Each step has a name and two operand indices: cond and side, 0 if the step lacks one.
struct saved_steps {
    std::vector<std::string> operators;
    numbers operands;
};

void append(saved_steps& saved, std::string op, std::size_t cond, std::size_t side) {
    saved.operators.push_back(std::move(op));
    for (const std::size_t operand : {cond, side})
        saved.operands.push_back(static_cast<std::int64_t>(operand));
}

saved_steps save(const std::vector<row_step>& steps) {
    const auto name = [](row_operator op) {
        return row_operator_names()[static_cast<std::size_t>(op)];
    };
    saved_steps saved;
    for (const row_step& step : steps) {
        if (const auto* with = std::get_if<row_combine>(&step))
            append(saved, name(with->op), 0, with->side);
        else if (const auto* select = std::get_if<row_select>(&step))
            append(saved, select->cond ? name(select->op) : causal, select->cond.value_or(0),
                   select->side);
        else
            append(saved, name(std::get<row_change>(step).op), 0, 0);
    }
    return saved;
}

row_step step_of(const std::string& name, std::size_t cond, std::size_t side) {
    if (name == causal) return causal_select(side);
    const auto names = row_operator_names();
    const auto position = std::ranges::find(names, name);
    OPENVINO_ASSERT(position != names.end(), "Maskwise: unknown step '", name, "'");
    const auto op = static_cast<row_operator>(position - names.begin());
    if (op == row_operator::select_kept || op == row_operator::select_masked)
        return row_select{op, cond, side};
    if (has_side(op)) return row_combine{op, side};
    return row_change{op};
}

void require_operand(std::int64_t operand, std::size_t count) {
    OPENVINO_ASSERT(operand >= 0 && static_cast<std::size_t>(operand) < count,
                    "Maskwise: a step reads operand ", operand, ", expected less than ", count);
}

void require_pairs(const char* name, std::size_t count, const numbers& values) {
    OPENVINO_ASSERT(values.size() == 2 * count, "Maskwise: ", count, " ", name, " have ",
                    values.size(), " numbers, expected two for each");
}

std::vector<row_step> restore(const saved_steps& saved, std::size_t operands) {
    require_pairs("steps", saved.operators.size(), saved.operands);
    OPENVINO_ASSERT(saved.operators.size() <= max_row_actions, "Maskwise: ", saved.operators.size(),
                    " steps, at most ", max_row_actions, " expected");
    std::vector<row_step> steps;
    for (std::size_t i = 0; i < saved.operators.size(); ++i) {
        const auto cond = saved.operands[2 * i], side = saved.operands[2 * i + 1];
        steps.push_back(step_of(saved.operators[i], static_cast<std::size_t>(cond),
                                static_cast<std::size_t>(side)));
        if (std::holds_alternative<row_change>(steps.back())) continue;
        require_operand(cond, operands);
        require_operand(side, operands);
    }
    return steps;
}

void visit_order(ov::AttributeVisitor& visitor, const char* name, std::vector<int>& order) {
    numbers saved(order.begin(), order.end());
    visitor.on_attribute(name, saved);
    OPENVINO_ASSERT(saved.size() >= 2 && saved.size() <= max_rank, "Maskwise: ", name, " orders ",
                    saved.size(), " dimensions, expected 2 to ", max_rank);
    OPENVINO_ASSERT(fusion::is_order(saved), "Maskwise: ", name, " is not a permutation of ",
                    saved.size(), " dimensions");
    order.clear();
    for (const std::int64_t d : saved) order.push_back(static_cast<int>(d));
}

void visit_factors(ov::AttributeVisitor& visitor, std::vector<row_combine>& factors,
                   std::size_t operands) {
    numbers saved;
    for (const auto& factor : factors)
        saved.insert(saved.end(),
                     {static_cast<std::int64_t>(factor.side), factor.op == row_operator::divide});
    visitor.on_attribute("factors", saved);
    require_pairs("factors", saved.size() / 2, saved);
    OPENVINO_ASSERT(saved.size() <= 2 * fusion::max_numbers, "Maskwise: ", saved.size() / 2,
                    " factors, at most ", fusion::max_numbers, " expected");
    factors.clear();
    for (std::size_t i = 0; i < saved.size(); i += 2) {
        require_operand(saved[i], operands);
        factors.push_back({saved[i + 1] != 0 ? row_operator::divide : row_operator::multiply,
                           static_cast<std::size_t>(saved[i])});
    }
}

void visit_attention(ov::AttributeVisitor& visitor, fusion::attention_chain& attention,
                     std::size_t operands) {
    visit_order(visitor, "query", attention.query.order);
    visit_order(visitor, "key", attention.key.order);
    visit_order(visitor, "value", attention.value.order);
    visit_order(visitor, "result", attention.order);
    visit_factors(visitor, attention.factors, operands);
}

} // namespace

void visit(ov::AttributeVisitor& visitor, fusion::block& block, std::size_t inputs) {
    bool is_attention = block.attention.has_value();
    visitor.on_attribute("attention", is_attention);
    if (is_attention && !block.attention) block.attention.emplace();
    const std::size_t matrices = is_attention ? 3 : 1;
    OPENVINO_ASSERT(inputs >= matrices, "Maskwise: ", inputs, " inputs, at least ", matrices,
                    " expected");
    const std::size_t operands = inputs - matrices;
    OPENVINO_ASSERT(operands <= max_row_operands + fusion::max_numbers, "Maskwise: ", operands,
                    " operands, at most ", max_row_operands + fusion::max_numbers, " expected");
    saved_steps saved = save(block.rows.steps);
    visitor.on_attribute("operators", saved.operators);
    visitor.on_attribute("operands", saved.operands);
    row_soft_max soft_max = block.rows.soft_max.value_or(row_soft_max{});
    visitor.on_attribute("inf_as_zero", soft_max.inf_as_zero);
    visitor.on_attribute("nan_as_zero", soft_max.nan_as_zero);
    if (is_attention) visit_attention(visitor, *block.attention, operands);
    block.rows.steps = restore(saved, operands);
    block.rows.soft_max = soft_max;
    block.rows.operands.resize(operands);
}

} // namespace maskwise::openvino
