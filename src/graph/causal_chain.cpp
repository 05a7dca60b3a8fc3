// The part of a chain that knows a causal mask from the indices it is made of.

#include "graph/chain_finder.hpp"

namespace maskwise::graph {
namespace {

// The last two extents agree and are known: an index counts the scores' own rows and columns.
bool has_matrix_of(const logical_tensor& a, const logical_tensor& b) {
    const int rank_a = a.extents.rank(), rank_b = b.extents.rank();
    if (!a.shape_known() || !b.shape_known() || rank_a < 2 || rank_b < 2) return false;
    return a.extents[rank_a - 1] == b.extents[rank_b - 1] &&
           a.extents[rank_a - 2] == b.extents[rank_b - 2];
}

bool may_be_one_element(const logical_tensor& tensor) {
    const dims& extents = tensor.extents;
    return extents.rank() == 0 ||
           (extents.rank() == 1 && (extents[0] == 1 || extents[0] == unknown_extent));
}

} // namespace

void chain_finder::take_boundary(const logical_tensor& row_index, const logical_tensor& scores) {
    std::size_t id = row_index.id;
    for (const op* maker = producer(id);; maker = producer(id)) {
        if (maker == nullptr || only_user(id) == nullptr)
            throw no_chain{"the mask's row index comes from outside, or is used there"};
        chain_.op_ids.push_back(maker->id);
        if (maker->kind == op_kind::gen_index) {
            if (!is_axis(*maker, 2) || !has_matrix_of(maker->inputs[0], scores))
                throw no_chain{"the mask's first index is not the row's"};
            return;
        }
        const bool moves = maker->kind == op_kind::add || maker->kind == op_kind::subtract;
        if (!moves || !may_be_one_element(maker->inputs[1]))
            throw no_chain{"the mask's row index is made by other operators"};
        chain_.boundary.push_back({maker->inputs[1], maker->kind == op_kind::subtract});
        id = maker->inputs[0].id;
    }
}

// GenIndex(row) [+ a - b] >= GenIndex(column): row i keeps the columns up to i + a - b.
void chain_finder::take_causal_mask(const op& select) {
    const std::size_t cond = select.inputs[0].id;
    const op* compare = producer(cond);
    if (compare->kind != op_kind::greater_equal || !is_private(cond, select))
        throw no_chain{"the mask is made by operators other than GenIndex and GreaterEqual"};
    chain_.op_ids.push_back(compare->id);
    const op* column = producer(compare->inputs[1].id);
    const logical_tensor& scores = select.inputs[1];
    if (column == nullptr || column->kind != op_kind::gen_index || !is_axis(*column, 1) ||
        !has_matrix_of(column->inputs[0], scores) || !is_private(compare->inputs[1].id, *compare) ||
        !is_private(compare->inputs[0].id, *compare))
        throw no_chain{"the mask does not compare a row with a column index"};
    chain_.op_ids.push_back(column->id);
    take_boundary(compare->inputs[0], scores);
}

// Among single operators a mask that is made otherwise is an operand like any other.
bool chain_finder::try_causal_mask(const op& select, row_operator how) {
    if (producer(select.inputs[0].id) == nullptr) return false;
    const row_chain before = chain_;
    try {
        if (how != row_operator::select_kept)
            throw no_chain{"a mask made in the partition keeps the scores where it is false"};
        take_causal_mask(select);
    } catch (const no_chain&) {
        if (is_partition()) throw;
        chain_ = before;
        return false;
    }
    return true;
}

} // namespace maskwise::graph
