#include "fusion/causal_mask.hpp"

namespace maskwise::fusion {
namespace {

void require(bool holds, const char* reason_against) {
    if (!holds) throw no_chain{reason_against};
}

// Whether both shapes are known and their last two extents are equal. A GenIndex of `a` then counts
// the rows and columns of `b`.
bool same_last_two(const logical_tensor& a, const logical_tensor& b) {
    const int rank_a = a.extents.rank(), rank_b = b.extents.rank();
    if (!a.shape_known() || !b.shape_known() || rank_a < 2 || rank_b < 2) return false;
    return a.extents[rank_a - 1] == b.extents[rank_b - 1] &&
           a.extents[rank_a - 2] == b.extents[rank_b - 2];
}

bool is_index(const op& op, int from_end, const logical_tensor& scores) {
    return op.kind == op_kind::gen_index && works_along(op, from_end) &&
           same_last_two(op.inputs[0], scores);
}

bool may_be_one_element(const logical_tensor& tensor) {
    const dims& extents = tensor.extents;
    return extents.rank() == 0 ||
           (extents.rank() == 1 && (extents[0] == 1 || extents[0] == unknown_extent));
}

// Follows the row index from the comparison up to its GenIndex. Additions and subtractions on this
// path become terms of the offset.
void take_offset(std::size_t row_index, const logical_tensor& scores, const match_policy& policy,
                 row_chain& chain) {
    for (;;) {
        const op* maker = policy.maker(row_index);
        require(maker != nullptr && policy.only_reader(row_index) != nullptr,
                "the mask's row index is an input, or has other readers");
        chain.op_ids.push_back(maker->id);
        if (maker->kind == op_kind::gen_index)
            return require(is_index(*maker, 2, scores), "the first index is not a row index");
        const bool is_subtracted = maker->kind == op_kind::subtract;
        require((is_subtracted || maker->kind == op_kind::add) &&
                    may_be_one_element(maker->inputs[1]),
                "the mask's row index is computed by other operators");
        require(chain.causal_offset.size() < max_offset_terms,
                "too many numbers are added to the mask's row index");
        chain.causal_offset.push_back({maker->inputs[1], is_subtracted});
        row_index = maker->inputs[0].id;
    }
}

} // namespace

void take_causal_mask(const op& select, const match_policy& policy, row_chain& chain) {
    const std::size_t cond = select.inputs[0].id;
    const op& compare = *policy.maker(cond);
    require(compare.kind == op_kind::greater_equal && policy.only_reader(cond) == &select,
            "the mask is computed by operators other than GenIndex and GreaterEqual");
    const logical_tensor& scores = select.inputs[1];
    const std::size_t row_index = compare.inputs[0].id, column_index = compare.inputs[1].id;
    const op* column = policy.maker(column_index);
    require(column != nullptr && is_index(*column, 1, scores) &&
                policy.only_reader(column_index) == &compare &&
                policy.only_reader(row_index) == &compare,
            "the mask does not compare a row index with a column index");
    chain.op_ids = {compare.id, column->id};
    take_offset(row_index, scores, policy, chain);
}

} // namespace maskwise::fusion
