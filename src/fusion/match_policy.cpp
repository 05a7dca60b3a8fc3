#include "fusion/match_policy.hpp"

#include "tensor/data_type.hpp"

#include <algorithm>

namespace maskwise::fusion {

bool partition_policy::leaves(std::size_t value) const {
    return std::ranges::find(output_ids_, value) != output_ids_.end();
}

std::optional<std::size_t> partition_policy::row_of(const op& user, std::size_t a,
                                                    std::size_t b) const {
    const bool a_is_computed = maker(user.inputs[a].id) != nullptr;
    const bool b_is_computed = a != b && maker(user.inputs[b].id) != nullptr;
    if (a_is_computed == b_is_computed) return std::nullopt;
    return a_is_computed ? a : b;
}

std::optional<std::size_t> graph_policy::row_of(const op& user, std::size_t a,
                                                std::size_t b) const {
    const auto may_be = [&](std::size_t i) {
        return same_known_shape(user.inputs[i], user.outputs[0]);
    };
    const auto is_computed = [&](std::size_t i) { return maker(user.inputs[i].id) != nullptr; };
    if (!may_be(a)) return may_be(b) ? std::optional(b) : std::nullopt;
    return may_be(b) && !is_computed(a) && is_computed(b) ? b : a;
}

bool graph_policy::may_follow_soft_max(data_type type) const {
    return !is_16_bit_float(type);
}

} // namespace maskwise::fusion
