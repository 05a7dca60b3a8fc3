#pragma once

#include "onednn/compile.hpp"
#include "onednn/merge.hpp"
#include "onednn/region.hpp"

#include <memory>

namespace maskwise::onednn {

// A client may compile with other shapes and types than it gave at add_op. What was decided by
// those, which input is the row and along which dimension an operator works, is then decided anew:
// the operators of a merged chain of rows, described by the tensors of this compile, and the chain
// in them, which is empty where it is not the whole any more. Null where nothing that was known
// has changed. Throws invalid_argument, invalid_shape and std::bad_alloc.
std::shared_ptr<const region_record> described_anew(const merged_record& merged,
                                                    const compile_call& call);

} // namespace maskwise::onednn
