#pragma once

#include "maskwise/attention.hpp"

#include <cstdint>

namespace maskwise {

// The description with every stride, dst and scale filled in. Throws invalid_argument and
// invalid_shape as compile(attention_desc) says.
attention_desc checked_attention(attention_desc desc);

// Throws invalid_argument for a null address of an operand with elements.
void require_addresses(const attention_desc& desc, const attention_operands& at);

// Extent of the dimension before the last two.
std::int64_t heads_of(const tensor_desc& operand);

} // namespace maskwise
