#include "onednn/partition/region_tensors.hpp"

#include "base/error.hpp"
#include "onednn/record/translate.hpp"
#include "tensor/tensor_desc.hpp"

#include <string>

namespace maskwise::onednn {

void require_types(const row_region& region, const std::vector<abi::logical_tensor>& given) {
    // What runs operator by operator takes a cond of any type that oneDNN takes.
    const auto may_differ = [&](const abi::logical_tensor& recorded) {
        return !region.block && recorded.data_type == abi::type_boolean;
    };
    for (const auto& op : region.records)
        for (const auto* list : {&op->inputs, &op->outputs})
            for (const auto& tensor : *list) {
                const auto* now = find_by_id(given, tensor.id);
                if (now != nullptr && now->data_type != tensor.data_type && !may_differ(tensor))
                    throw invalid_argument("tensor " + std::to_string(tensor.id) +
                                           " has another type than at add_op");
            }
}

void require_outputs(const row_region& region, const std::vector<abi::logical_tensor>& given) {
    for (const std::size_t id : region.output_ids) {
        const auto* output = find_by_id(given, id);
        if (output == nullptr)
            throw invalid_argument("output " + std::to_string(id) + " is not asked for");
        if (output->layout_type != abi::layout_any)
            to_desc(from_abi(*output)); // throws where it is open
    }
}

tensor_desc describe_input(const std::vector<abi::logical_tensor>& given, std::size_t id) {
    if (const auto* tensor = find_by_id(given, id)) return to_input_desc(from_abi(*tensor));
    throw invalid_argument("tensor " + std::to_string(id) + " is not in the list given to compile");
}

} // namespace maskwise::onednn
