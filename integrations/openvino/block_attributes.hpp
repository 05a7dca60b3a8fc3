#pragma once

#include "fusion/block.hpp"

#include <openvino/core/attribute_visitor.hpp>

#include <cstddef>

namespace maskwise::openvino {

// Reads or writes a block's attributes in a saved model. A saved model may hold any text and
// numbers. Throws ov::Exception for attributes that do not fit an operation with this number of
// inputs.
void visit(ov::AttributeVisitor& visitor, fusion::block& block, std::size_t inputs);

} // namespace maskwise::openvino
