#include "onednn/partition/gains.hpp"

#include "attention/run_attention.hpp"
#include "base/checked.hpp"
#include "base/cpu.hpp"
#include "base/environment.hpp"
#include "exec/tbb_library.hpp"
#include "fusion/gains.hpp"
#include "onednn/library/real_library.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace maskwise::onednn {
namespace {

constexpr int fpmath_strict = 0;

// oneDNN before 3.8 masks by arithmetic if true mask elements replace scores. A row chain is then
// not faster than oneDNN.
bool masks_by_arithmetic(const fusion::row_chain& chain) {
    const auto replaces = [](const row_step& step) {
        const auto* select = std::get_if<row_select>(&step);
        return select != nullptr && select->op == row_operator::select_masked;
    };
    return !real().at_least(3, 8) && std::any_of(chain.steps.begin(), chain.steps.end(), replaces);
}

// The product of the client's extents may overflow 64 bits.
bool has_fewer_elements(const dims& extents, std::int64_t limit) {
    std::optional<std::int64_t> count = 1;
    for (const std::int64_t extent : extents)
        if (count) count = checked_multiply(*count, extent);
    return count && *count < limit;
}

// oneDNN >= 3.8 has fast code for a mask of the scores' shape. With few scores, a short chain saves
// less time than dividing the partition costs.
bool masks_element_by_element(const std::vector<graph::op>& ops, const fusion::row_chain& chain) {
    constexpr std::size_t short_chain = 3;
    if (!real().at_least(3, 8) || chain.length() > short_chain) return false;
    return std::any_of(ops.begin(), ops.end(), [&](const graph::op& op) {
        if (op.kind != graph::op_kind::select || chain.operands.empty()) return false;
        const auto &cond = op.inputs[0], &scores = op.inputs[1];
        const bool is_operand =
            std::any_of(chain.operands.begin(), chain.operands.end(),
                        [&cond](const auto& operand) { return operand.id == cond.id; });
        return is_operand && cond.shape_known() && cond.extents == scores.extents &&
               has_fewer_elements(cond.extents, fusion::gains::onednn_mask_of_scores.least);
    });
}

bool onednn_has_amx() {
    return onednn_has_matrix_products(native_cpu(),
                                      read_environment("ONEDNN_MAX_CPU_ISA").value_or(""));
}

} // namespace

std::string reason_against_rows(const row_region& region) {
    if (std::ranges::count(region.ops, graph::op_kind::select, &graph::op::kind) == 0)
        return "oneDNN is as fast, because there is no Select";
    if (masks_by_arithmetic(region.block->rows))
        return "this oneDNN is as fast with a mask that replaces scores where it is true";
    if (masks_element_by_element(region.ops, region.block->rows))
        return "this oneDNN is as fast with a mask of the scores' own shape";
    return {};
}

std::string reason_against_attention(const tile_plan& plan, const graph_settings& settings) {
    if (settings.fpmath_mode != fpmath_strict) return "the graph lets oneDNN round in products";
    if (is_16_bit_float(plan.desc.query.type) && onednn_has_amx() && !plan.multiplies_by_tiles())
        return "oneDNN multiplies by AMX, and Maskwise does not";
    if (may_use_threads(plan) && !has_tbb(tbb_search::open_too))
        return "oneTBB is missing, and oneDNN may have threads";
    return {};
}

} // namespace maskwise::onednn
