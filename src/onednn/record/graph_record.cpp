#include "onednn/record/graph_record.hpp"

#include <algorithm>

namespace maskwise::onednn {

const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors,
                                      std::size_t id) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [id](const auto& tensor) { return tensor.id == id; });
    return found == tensors.end() ? nullptr : &*found;
}

std::shared_ptr<const op_record> find_op(const op_list& ops, std::size_t id) {
    const auto found =
        std::find_if(ops.begin(), ops.end(), [id](const auto& op) { return op->id == id; });
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
