#include "fusion/block.hpp"

namespace maskwise::fusion {

std::vector<std::size_t> block::inputs() const {
    std::vector<std::size_t> ids{rows.scores};
    if (attention)
        ids = {attention->query.tensor.id, attention->key.tensor.id, attention->value.tensor.id};
    for (const auto& operand : rows.operands) ids.push_back(operand.id);
    if (attention)
        for (const auto& number : attention->numbers) ids.push_back(number.id);
    for (const auto& term : rows.causal_offset) ids.push_back(term.tensor.id);
    return ids;
}

} // namespace maskwise::fusion
