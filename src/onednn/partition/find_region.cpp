#include "onednn/partition/find_region.hpp"

#include "graph/find_row_chain.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/translate_op.hpp"

#include <algorithm>

namespace maskwise::onednn {
namespace {

// Measured in front of 3.7: there a mask that replaces the scores where it is true is arithmetic
// inside oneDNN's own kernels, and nothing is gained.
bool masks_by_arithmetic(const graph::row_chain& chain) {
    const auto replaces = [](const row_step& step) {
        const auto* select = std::get_if<row_select>(&step);
        return select != nullptr && select->op == row_operator::select_masked;
    };
    return !real().at_least(3, 8) && std::any_of(chain.steps.begin(), chain.steps.end(), replaces);
}

// Measured in front of 3.13: a mask that is not broadcast is no reference code there. Then a short
// chain gains less than cutting the partition in two costs (0.87 at 1 Mi elements, 1.0 at 4
// Mi, 1.13 at 16 Mi).
bool masks_element_by_element(const std::vector<graph::op>& ops, const graph::row_chain& chain) {
    constexpr std::size_t short_chain = 3;
    constexpr std::int64_t gains_from_elements = 4 << 20;
    if (!real().at_least(3, 8) || chain.length() > short_chain) return false;
    return std::any_of(ops.begin(), ops.end(), [&](const graph::op& op) {
        if (op.kind != graph::op_kind::select || chain.operands.empty()) return false;
        const auto &cond = op.inputs[0], &scores = op.inputs[1];
        const bool is_operand =
            std::any_of(chain.operands.begin(), chain.operands.end(),
                        [&cond](const auto& operand) { return operand.id == cond.id; });
        return is_operand && cond.shape_known() && cond.extents == scores.extents &&
               element_count(cond.extents) < gains_from_elements;
    });
}

} // namespace

std::optional<row_region> find_region(const graph_settings& settings, op_list&& records,
                                      std::vector<std::size_t>&& output_ids, std::string& reason) {
    row_region region{settings, std::move(records), {}, std::move(output_ids), {}};
    for (const auto& record : region.records) region.ops.push_back(translate(*record));
    auto chain = graph::find_row_chain(region.ops, region.output_ids, reason);
    if (!chain) return std::nullopt;
    if (masks_by_arithmetic(*chain)) {
        reason = "this oneDNN is as fast with a mask that replaces scores";
        return std::nullopt;
    }
    if (masks_element_by_element(region.ops, *chain)) {
        reason = "this oneDNN is as fast with a mask of the scores' own shape";
        return std::nullopt;
    }
    region.chain = std::move(*chain);
    return region;
}

} // namespace maskwise::onednn
