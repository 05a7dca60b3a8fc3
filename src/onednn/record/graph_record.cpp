#include "onednn/record/graph_record.hpp"

#include <algorithm>

namespace maskwise::onednn {

const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors,
                                      std::size_t id) {
    const auto found = std::ranges::find(tensors, id, &abi::logical_tensor::id);
    return found == tensors.end() ? nullptr : &*found;
}

std::shared_ptr<const op_record> find_op(const op_list& ops, std::size_t id) {
    const auto found = std::ranges::find(ops, id, &op_record::id);
    return found == ops.end() ? nullptr : *found;
}

std::string joined_names(const op_list& ops) {
    std::string names;
    for (const auto& op : ops) {
        if (!names.empty()) names += ';';
        names += op->name;
    }
    return names;
}

} // namespace maskwise::onednn
