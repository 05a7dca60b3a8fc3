// Partitions and compiled partitions. A compiled partition of Maskwise has a real handle but is
// empty in the real library, so the plugin answers the client's queries.

#include "onednn/library/forward.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/partition/assembly.hpp"
#include "onednn/partition/claim_partition.hpp"
#include "onednn/partition/compile_partition.hpp"
#include "onednn/partition/executable.hpp"
#include "onednn/partition/merged_partitions.hpp"
#include "onednn/record/tables.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace maskwise::onednn {
namespace {

// Returns the output's description if a tensor is both an input and a result.
const logical_tensor* find_tensor(const executable& compiled, std::size_t id) {
    const auto* const input = find_by_id(compiled.inputs(), id);
    return input != nullptr && !compiled.makes(id) ? input : find_by_id(compiled.outputs(), id);
}

// `num` must equal the number of items, as in the real library.
template <class Item>
abi::status copy_all(const std::vector<Item>& items, std::size_t num, Item* out) {
    if (out == nullptr || num != items.size()) return abi::invalid_arguments;
    std::copy(items.begin(), items.end(), out);
    return abi::success;
}

template <class Item>
abi::status count_all(const std::vector<Item>& items, std::size_t* num) {
    if (num == nullptr) return abi::invalid_arguments;
    *num = items.size();
    return abi::success;
}

abi::status forget(abi::partition partition) {
    tables().claims.erase(partition);
    return real_partition_destroy(partition);
}

} // namespace

abi::status dnnl_graph_partition_create_with_op(abi::partition* partition, abi::const_op op,
                                                int engine_kind) {
    const auto status = real_partition_create_with_op(partition, op, engine_kind);
    return record_created(status, partition, forget, [&] {
        if (const auto* const record = tables().ops.find(op))
            claim_single_op(**record, engine_kind, *partition);
    });
}

abi::status dnnl_graph_partition_destroy(abi::partition partition) {
    return forget(partition);
}

// Queries before compilation. In the real library, a merged partition's handle is only one of the
// merged partitions, so the plugin answers for all of them.

abi::status dnnl_graph_partition_get_op_num(abi::const_partition partition, std::size_t* num) {
    if (const auto* merged = find_merged(partition)) return count_all(merged->op_ids, num);
    return real_partition_get_op_num(partition, num);
}

abi::status dnnl_graph_partition_get_ops(abi::partition partition, std::size_t num,
                                         std::size_t* ids) {
    if (const auto* merged = find_merged(partition)) return copy_all(merged->op_ids, num, ids);
    return real_partition_get_ops(partition, num, ids);
}

abi::status dnnl_graph_partition_get_input_ports_num(abi::const_partition partition,
                                                     std::size_t* num) {
    if (const auto* merged = find_merged(partition)) return count_all(merged->inputs, num);
    return real_partition_get_input_ports_num(partition, num);
}

abi::status dnnl_graph_partition_get_input_ports(abi::const_partition partition, std::size_t num,
                                                 abi::logical_tensor* inputs) {
    if (const auto* merged = find_merged(partition)) return copy_all(merged->inputs, num, inputs);
    return real_partition_get_input_ports(partition, num, inputs);
}

abi::status dnnl_graph_partition_get_output_ports_num(abi::const_partition partition,
                                                      std::size_t* num) {
    if (const auto* merged = find_merged(partition)) return count_all(merged->outputs, num);
    return real_partition_get_output_ports_num(partition, num);
}

abi::status dnnl_graph_partition_get_output_ports(abi::const_partition partition, std::size_t num,
                                                  abi::logical_tensor* outputs) {
    if (const auto* merged = find_merged(partition)) return copy_all(merged->outputs, num, outputs);
    return real_partition_get_output_ports(partition, num, outputs);
}

abi::status dnnl_graph_partition_is_supported(abi::const_partition partition,
                                              std::uint8_t* is_supported) {
    const auto* const claim = tables().claims.find(partition);
    if (claim == nullptr || !claim->is_visible() || is_supported == nullptr)
        return real_partition_is_supported(partition, is_supported);
    *is_supported = 1;
    return abi::success;
}

abi::status dnnl_graph_partition_compile(abi::partition partition,
                                         abi::compiled_partition compiled_partition,
                                         std::size_t in_num, const abi::logical_tensor** inputs,
                                         std::size_t out_num, const abi::logical_tensor** outputs,
                                         abi::engine engine) {
    const compile_call call{partition, compiled_partition, in_num, inputs, out_num, outputs,
                            engine};
    const auto* const claim = tables().claims.find(partition);
    return claim != nullptr ? compile_partition(*claim, call) : leave_to_onednn(call);
}

abi::status dnnl_graph_compiled_partition_destroy(abi::compiled_partition compiled_partition) {
    tables().compiled.erase(compiled_partition);
    return real_compiled_partition_destroy(compiled_partition);
}

// For any other id, the real library answers from its empty object: success, and a blank tensor.
abi::status
dnnl_graph_compiled_partition_query_logical_tensor(abi::const_compiled_partition compiled_partition,
                                                   std::size_t id,
                                                   abi::logical_tensor* logical_tensor) {
    const auto* const compiled = tables().compiled.find(compiled_partition);
    const auto* const tensor =
        compiled != nullptr && logical_tensor != nullptr ? find_tensor(*compiled, id) : nullptr;
    if (tensor == nullptr)
        return real_compiled_partition_query_logical_tensor(compiled_partition, id, logical_tensor);
    *logical_tensor = to_abi(*tensor);
    return abi::success;
}

abi::status
dnnl_graph_compiled_partition_get_inplace_ports(abi::const_compiled_partition compiled_partition,
                                                std::size_t* num, const abi::inplace_pair** pairs) {
    const auto* const compiled = tables().compiled.find(compiled_partition);
    if (compiled == nullptr || num == nullptr || pairs == nullptr)
        return real_compiled_partition_get_inplace_ports(compiled_partition, num, pairs);
    *num = compiled->inplace() ? 1 : 0;
    *pairs = compiled->inplace() ? &*compiled->inplace() : nullptr;
    return abi::success;
}

abi::status dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(
    abi::const_compiled_partition compiled_partition, abi::logical_tensor* logical_tensor) {
    const auto* const compiled = tables().compiled.find(compiled_partition);
    if (compiled == nullptr && real().compiled_partition_get_scratchpad_logical_tensor != nullptr)
        return real_compiled_partition_get_scratchpad_logical_tensor(compiled_partition,
                                                                     logical_tensor);
    if (compiled_partition == nullptr || logical_tensor == nullptr) return abi::invalid_arguments;
    *logical_tensor = to_abi(scratchpad_of(compiled != nullptr ? compiled->scratch_bytes() : 0));
    return abi::success;
}

} // namespace maskwise::onednn

int maskwise_onednn_owns(maskwise::onednn::abi::const_compiled_partition compiled_partition) {
    return maskwise::onednn::tables().compiled.find(compiled_partition) != nullptr ? 1 : 0;
}
