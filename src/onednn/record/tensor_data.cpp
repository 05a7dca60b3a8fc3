#include "onednn/record/tensor_data.hpp"

#include "onednn/library/real_library.hpp"
#include "onednn/record/tables.hpp"

namespace maskwise::onednn {

void* memory_of(abi::const_tensor tensor) {
    void* data = nullptr;
    if (tensor != nullptr) real_tensor_get_data_handle(tensor, &data);
    return data;
}

const void* data_of(abi::const_tensor tensor) {
    if (const void* data = memory_of(tensor)) return data;
    const auto* const record = tables().tensors.find(tensor);
    return record != nullptr && record->scalar ? record->scalar->data() : nullptr;
}

} // namespace maskwise::onednn
