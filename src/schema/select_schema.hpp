#pragma once

#include "maskwise/maskwise.hpp"

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace maskwise {

// Returns nullopt for any text but "none" and "numpy".
std::optional<auto_broadcast> parse_auto_broadcast(std::string_view text);

// How a dialect combines three shapes under auto_broadcast::numpy.
enum class broadcast_rule {
    two_step,        // src_0 and src_1 broadcast to each other, then cond broadcasts to the result
    multidirectional // all three broadcast to each other, so that cond may expand the result
};

// One dialect's definition of Select.
struct select_schema {
    static constexpr data_type cond_type = data_type::boolean;
    static constexpr auto_broadcast default_broadcast = auto_broadcast::numpy;

    std::string_view dialect;
    std::array<std::string_view, 3> inputs; // the dialect's names of cond, src_0 and src_1
    std::string_view output;
    std::span<const data_type> value_types; // src_0, src_1 and dst have one of these types
    bool has_auto_broadcast;                // else the broadcast is always default_broadcast
    broadcast_rule rule;
};

// Throws argument_error if `form` is not a dialect.
const select_schema& schema_of(dialect form);

inline const select_schema& onednn_select() {
    return schema_of(dialect::onednn_select);
}

// Throws argument_error if the schema does not allow a type. The error's text holds the dialect,
// the operand, its type and the expected types.
void check_types(const select_schema& schema, data_type cond, data_type src_0, data_type src_1,
                 data_type dst);

// Returns the shape of dst. Throws shape_error, with the shapes in the text, if the inputs do not
// broadcast or an extent is negative. Throws argument_error for a broadcast that the dialect does
// not have.
dims infer_dst(const select_schema& schema, auto_broadcast broadcast, const dims& cond,
               const dims& src_0, const dims& src_1);

} // namespace maskwise
