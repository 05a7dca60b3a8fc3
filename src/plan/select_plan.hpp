#pragma once

#include "tensor/tensor_desc.hpp"

#include <memory>
#include <string>

namespace maskwise {

// Everything decided before data is seen; immutable, so any number of threads may run one plan.
class select_plan;

// The plan for `desc`, with dst and all strides in it, from the cache where it is known. Any
// thread. cond has one byte an element, src_0, src_1 and dst one common width of 1, 2, 4, 8 or 16
// bytes; or all three are strings. Throws shape_error if an input
// does not broadcast one-way to dst or byte counts overflow. Throws argument_error if widths differ
// or elements of dst overlap (a stride of 0, or smaller than the span of the dimensions inside it),
// and as active_isa() does.
std::shared_ptr<const select_plan> make_select_plan(const select_desc& desc);

// The plan that copies elements from one layout to another: a Select that always takes src_0.
std::shared_ptr<const select_plan> make_copy_plan(const tensor_desc& from, const tensor_desc& to);

// One line: shape classes, tile, packing, loop order, kernel, stores.
std::string to_string(const select_plan& plan);

} // namespace maskwise
