#include "plan/loop_nest.hpp"

#include "base/error.hpp"
#include "tensor/broadcast.hpp"

namespace maskwise {
namespace {

std::string describe(std::size_t which, const tensor_desc& tensor) {
    return std::string(operand_names[which]) + " (" + to_string(tensor) + ')';
}

bool keeps_strings_aligned(const tensor_desc& tensor) {
    constexpr std::int64_t alignment = alignof(std::string);
    for (int d = 0; d < tensor.extents.rank(); ++d)
        if (tensor.extents[d] > 1 && tensor.strides_bytes[d] % alignment != 0) return false;
    return true;
}

void check_operand(std::size_t which, const tensor_desc& tensor, const tensor_desc& dst) {
    if (tensor.extents.rank() != tensor.strides_bytes.rank())
        throw argument_error(describe(which, tensor) + " does not have one stride per extent");
    const std::size_t expected = which == op_cond ? 1 : width_bytes(dst.type);
    if (expected == 0 || width_bytes(tensor.type) != expected)
        throw argument_error(
            describe(which, tensor) + " has elements of " +
            std::to_string(width_bytes(tensor.type)) + " bytes, expected " +
            (expected == 0 ? "1, 2, 4, 8, 16 or a string" : std::to_string(expected)));
    if (tensor.type == data_type::string && !keeps_strings_aligned(tensor))
        throw argument_error(describe(which, tensor) + " has strings that are not aligned to " +
                             std::to_string(alignof(std::string)) + " bytes");
    span_bytes(tensor); // throws on overflow
    require_one_way(tensor.extents, dst.extents, operand_names[which]);
}

} // namespace

loop_nest make_loop_nest(const select_desc& desc) {
    const auto operands = operands_of(desc);
    for (const std::size_t o : every_operand) check_operand(o, *operands[o], desc.dst);
    return collapse<operand_count>(operands, [&] {
        throw argument_error(describe(op_dst, desc.dst) + " may have elements that overlap");
    });
}

} // namespace maskwise
