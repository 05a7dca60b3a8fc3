#include "onednn/partition/compile_call.hpp"

#include "base/error.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"

#include <span>
#include <vector>

namespace maskwise::onednn {
namespace {

tensor_list read_list(std::span<const abi::logical_tensor* const> tensors) {
    tensor_list list;
    list.reserve(tensors.size());
    for (const abi::logical_tensor* tensor : tensors) {
        if (tensor == nullptr) throw argument_error("a logical tensor of the list is null");
        list.push_back(from_abi(*tensor));
    }
    return list;
}

// A list in the form that the real library expects.
class abi_list {
public:
    explicit abi_list(const tensor_list& tensors) {
        tensors_.reserve(tensors.size());
        for (const auto& tensor : tensors) tensors_.push_back(to_abi(tensor));
        for (const auto& tensor : tensors_) pointers_.push_back(&tensor);
    }

    std::size_t size() const { return pointers_.size(); }
    const abi::logical_tensor** data() { return pointers_.data(); }

private:
    std::vector<abi::logical_tensor> tensors_;
    std::vector<const abi::logical_tensor*> pointers_;
};

} // namespace

bool has_nulls(const compile_call& call) {
    return call.compiled_partition == nullptr || call.engine == nullptr ||
           (call.in_num > 0 && call.inputs == nullptr) ||
           (call.out_num > 0 && call.outputs == nullptr);
}

compile_request read_request(const compile_call& call) {
    return {read_list(std::span(call.inputs, call.in_num)),
            read_list(std::span(call.outputs, call.out_num)), call.engine};
}

abi::status call_real_compile(const compile_call& call) {
    return real_partition_compile(call.partition, call.compiled_partition, call.in_num, call.inputs,
                                  call.out_num, call.outputs, call.engine);
}

void compile_by_onednn(abi::partition partition, abi::compiled_partition compiled,
                       const compile_request& request) {
    abi_list inputs(request.inputs), outputs(request.outputs);
    require_success(call_real_compile({partition, compiled, inputs.size(), inputs.data(),
                                       outputs.size(), outputs.data(), request.engine}),
                    "compile");
}

logical_tensor query_onednn(abi::const_compiled_partition compiled, std::size_t id) {
    abi::logical_tensor tensor{};
    require_success(real_compiled_partition_query_logical_tensor(compiled, id, &tensor), "query");
    return from_abi(tensor);
}

} // namespace maskwise::onednn
