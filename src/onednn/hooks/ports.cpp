// Questions about a partition before it is compiled. The handle of a merged partition is one
// of its members' to the real library, so Maskwise answers for the whole.

#include "onednn/library/forward.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/partition/merged_partitions.hpp"

#include <algorithm>

namespace maskwise::onednn {
namespace {

// As the real library does it: the count must be right.
template <class Item>
abi::status copy_all(const std::vector<Item>& from, std::size_t num, Item* to) {
    if (to == nullptr || num != from.size()) return abi::invalid_arguments;
    std::copy(from.begin(), from.end(), to);
    return abi::success;
}

template <class Item>
abi::status count_all(const std::vector<Item>& from, std::size_t* num) {
    if (num == nullptr) return abi::invalid_arguments;
    *num = from.size();
    return abi::success;
}

} // namespace

abi::status dnnl_graph_partition_get_op_num(abi::const_partition partition, std::size_t* num) {
    if (const auto* merged = find_merged(partition)) return count_all(merged->op_ids, num);
    return call_real(&real_library::partition_get_op_num, partition, num);
}

abi::status dnnl_graph_partition_get_ops(abi::partition partition, std::size_t num,
                                         std::size_t* ids) {
    if (const auto* merged = find_merged(partition)) return copy_all(merged->op_ids, num, ids);
    return call_real(&real_library::partition_get_ops, partition, num, ids);
}

abi::status dnnl_graph_partition_get_input_ports_num(abi::const_partition partition,
                                                     std::size_t* num) {
    if (const auto* merged = find_merged(partition)) return count_all(merged->inputs, num);
    return call_real(&real_library::partition_get_input_ports_num, partition, num);
}

abi::status dnnl_graph_partition_get_input_ports(abi::const_partition partition, std::size_t num,
                                                 abi::logical_tensor* inputs) {
    if (const auto* merged = find_merged(partition)) return copy_all(merged->inputs, num, inputs);
    return call_real(&real_library::partition_get_input_ports, partition, num, inputs);
}

abi::status dnnl_graph_partition_get_output_ports_num(abi::const_partition partition,
                                                      std::size_t* num) {
    if (const auto* merged = find_merged(partition)) return count_all(merged->outputs, num);
    return call_real(&real_library::partition_get_output_ports_num, partition, num);
}

abi::status dnnl_graph_partition_get_output_ports(abi::const_partition partition, std::size_t num,
                                                  abi::logical_tensor* outputs) {
    if (const auto* merged = find_merged(partition)) return copy_all(merged->outputs, num, outputs);
    return call_real(&real_library::partition_get_output_ports, partition, num, outputs);
}

} // namespace maskwise::onednn
