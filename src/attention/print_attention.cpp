#include "attention/attention_checks.hpp"
#include "attention/run_attention.hpp"
#include "attention/tile_plan.hpp"
#include "tensor/tensor_desc.hpp"

namespace maskwise {
namespace {

std::string mask_words(const tile_plan& plan) {
    std::string words;
    if (plan.desc.soft_cap != 0) words += ", soft cap";
    if (plan.bias.column_count != 0) words += ", bias";
    if (plan.cond.column_count != 0) words += ", cond";
    return words;
}

const char* conversion_words(bool converts, bool in_pairs) {
    if (!converts) return "read in place";
    return in_pairs ? "packed into pairs a tile at a time" : "converted to f32 a tile at a time";
}

const char* order_words(attention_order order) {
    if (order == attention_order::fixed) return ", in fixed order";
    return order == attention_order::operators ? ", by operators" : "";
}

} // namespace

std::string to_string(const tile_plan& plan) {
    const auto number = [](std::int64_t value) { return std::to_string(value); };
    return "attention " + std::string(to_string(plan.desc.query.type)) + ' ' +
           to_string(plan.outer) + " x " + number(plan.rows) + " queries x " + number(plan.keys) +
           " keys, depth " + number(plan.depth) + ", columns " + number(plan.columns) +
           mask_words(plan) + ", tiles of " + number(plan.tile_rows) + 'x' +
           number(plan.tile_keys) + " in panels of " + number(plan.panel) +
           order_words(plan.desc.order) + (plan.in_pairs ? ", products of bf16, " : ", ") +
           std::string(to_string(plan.kernels->target));
}

std::string explain(const tile_plan& plan) {
    const int threads = threads_for(plan);
    std::string operands;
    for (const auto& [name, operand] : named_operands)
        if (const tensor_desc& desc = plan.desc.*operand; desc.type != data_type::undef)
            operands.append(name).append(" ").append(to_string(desc)).append("\n");
    return operands + "keys are " +
           conversion_words(plan.in_pairs ? plan.key_is_transposed : plan.converts_key,
                            plan.in_pairs) +
           ", values " + conversion_words(plan.converts_value, plan.in_pairs) + '\n' +
           to_string(plan) + '\n' + std::to_string(threads) +
           (threads == 1 ? " thread, " : " threads, ") +
           std::to_string(scratch_bytes(plan, threads)) + " bytes of scratch\n";
}

} // namespace maskwise
