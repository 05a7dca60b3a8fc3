#pragma once

#include "fusion/block.hpp"

#include <openvino/core/attribute_visitor.hpp>

#include <cstddef>

namespace maskwise::openvino {

// A block as a saved model has it. A visitor that reads may give any text and any numbers: throws
// ov::Exception for what an operation with so many inputs cannot have.
void visit(ov::AttributeVisitor& visitor, fusion::block& block, std::size_t inputs);

} // namespace maskwise::openvino
