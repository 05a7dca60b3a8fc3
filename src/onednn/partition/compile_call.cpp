#include "onednn/partition/compile_call.hpp"

#include "base/error.hpp"

namespace maskwise::onednn {

bool has_nulls(const compile_call& call) {
    return call.compiled_partition == nullptr || call.engine == nullptr ||
           (call.in_num > 0 && call.inputs == nullptr) ||
           (call.out_num > 0 && call.outputs == nullptr);
}

std::vector<abi::logical_tensor> copy_tensors(std::size_t count,
                                              const abi::logical_tensor** tensors) {
    std::vector<abi::logical_tensor> copies;
    copies.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (tensors[i] == nullptr) throw argument_error("a logical tensor of the list is null");
        copies.push_back(*tensors[i]);
    }
    return copies;
}

std::vector<const abi::logical_tensor*>
pointers_to(const std::vector<abi::logical_tensor>& tensors) {
    std::vector<const abi::logical_tensor*> pointers;
    pointers.reserve(tensors.size());
    for (const auto& tensor : tensors) pointers.push_back(&tensor);
    return pointers;
}

} // namespace maskwise::onednn
