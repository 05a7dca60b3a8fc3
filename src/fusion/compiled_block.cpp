#include "fusion/compiled_block.hpp"

namespace maskwise::fusion {

void append(operand_shapes& shapes, const tensor_desc& desc) {
    shapes.push_back(desc.extents.rank());
    shapes.insert(shapes.end(), desc.extents.begin(), desc.extents.end());
    shapes.insert(shapes.end(), desc.strides_bytes.begin(), desc.strides_bytes.end());
}

} // namespace maskwise::fusion
