// Tensors belong to the real library. The plugin records only data that the library cannot return
// later: a host scalar's value and, before oneDNN 3.6, the logical tensor.

#include "onednn/library/active.hpp"
#include "onednn/library/forward.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/tables.hpp"
#include "onednn/record/tensor_data.hpp"

#include <cstring>
#include <utility>

namespace maskwise::onednn {
namespace {

std::size_t scalar_bytes(int type) {
    return type == abi::type_i64 ? 8 : 4;
}

bool real_returns_logical_tensor() {
    return real().tensor_get_logical_tensor != nullptr;
}

} // namespace

abi::status dnnl_graph_tensor_create(abi::tensor* tensor, const abi::logical_tensor* logical_tensor,
                                     abi::engine engine, void* handle) {
    const auto status = real_tensor_create(tensor, logical_tensor, engine, handle);
    if (real_returns_logical_tensor()) return status;
    return record_created(status, tensor, real_tensor_destroy, [&] {
        auto record = std::make_unique<tensor_record>();
        record->logical_tensor = *logical_tensor;
        tables().tensors.insert(*tensor, std::move(record));
    });
}

abi::status dnnl_graph_tensor_create_scalar(abi::tensor* tensor,
                                            const abi::logical_tensor* logical_tensor,
                                            void* handle) {
    const auto status = real_tensor_create_scalar(tensor, logical_tensor, handle);
    return record_created(status, tensor, real_tensor_destroy, [&] {
        auto record = std::make_unique<tensor_record>();
        record->logical_tensor = *logical_tensor;
        record->scalar.emplace();
        std::memcpy(record->scalar->data(), handle, scalar_bytes(logical_tensor->data_type));
        tables().tensors.insert(*tensor, std::move(record));
    });
}

abi::status dnnl_graph_tensor_destroy(abi::tensor tensor) {
    tables().tensors.erase(tensor);
    return real_tensor_destroy(tensor);
}

abi::status dnnl_graph_tensor_get_logical_tensor(abi::const_tensor tensor,
                                                 abi::logical_tensor* logical_tensor) {
    if (real_returns_logical_tensor())
        return real_tensor_get_logical_tensor(tensor, logical_tensor);
    if (tensor == nullptr || logical_tensor == nullptr) return abi::invalid_arguments;
    const auto* const record = tables().tensors.find(tensor);
    if (record == nullptr) return abi::unimplemented;
    *logical_tensor = record->logical_tensor;
    return abi::success;
}

} // namespace maskwise::onednn
