#include "fusion/compiled_block.hpp"

namespace maskwise::fusion {

void append(operand_shapes& to, const tensor_desc& desc) {
    to.push_back(desc.extents.rank());
    to.insert(to.end(), desc.extents.begin(), desc.extents.end());
    to.insert(to.end(), desc.strides_bytes.begin(), desc.strides_bytes.end());
}

} // namespace maskwise::fusion
