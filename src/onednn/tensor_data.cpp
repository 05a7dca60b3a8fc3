#include "onednn/tensor_data.hpp"

#include "onednn/real_library.hpp"

namespace maskwise::onednn {

void* memory_of(abi::const_tensor tensor) {
    void* data = nullptr;
    if (tensor != nullptr) call_real(&real_library::tensor_get_data_handle, tensor, &data);
    return data;
}

void* data_of(abi::const_tensor tensor, std::shared_ptr<const tensor_record>& kept) {
    if (void* data = memory_of(tensor)) return data;
    kept = tables().tensors.find(tensor);
    return kept && kept->scalar ? const_cast<std::byte*>(kept->scalar->data()) : nullptr;
}

} // namespace maskwise::onednn
