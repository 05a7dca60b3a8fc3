#include "onednn/record/op_record.hpp"

#include <algorithm>

namespace maskwise::onednn {

constexpr std::size_t reference_count_bytes = 64; // at most, of allocate_shared
static_assert(sizeof(op_record) + reference_count_bytes <= record_block_bytes);

op_record::op_record(std::size_t op_id, int op_kind, const char* op_name)
    : id(op_id), kind(op_kind), name(op_name, &pool_) {
    inputs.reserve(3);
    outputs.reserve(1);
}

op_record::op_record(const op_record& other)
    : id(other.id), kind(other.kind), name(other.name, &pool_),
      attributes(other.attributes, &pool_), inputs(other.inputs, &pool_),
      outputs(other.outputs, &pool_) {}

void op_record::set(int attribute_name, attribute value) {
    for (auto& [name_held, value_held] : attributes)
        if (name_held == attribute_name) {
            value_held = std::move(value);
            return;
        }
    attributes.emplace_back(attribute_name, std::move(value));
}

const attribute* op_record::find(int attribute_name) const {
    const auto found =
        std::find_if(attributes.begin(), attributes.end(),
                     [attribute_name](const auto& held) { return held.first == attribute_name; });
    return found == attributes.end() ? nullptr : &found->second;
}

} // namespace maskwise::onednn
