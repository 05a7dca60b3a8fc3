#include "onednn/library/real_partition.hpp"

#include "onednn/library/real_library.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace maskwise::onednn {
namespace {

// Reads a list from the real library: first the length, then the items.
template <class Item, class Count, class Items>
std::vector<Item> list_of(abi::partition partition, Count count_of, Items items_of) {
    std::size_t count = 0;
    count_of(partition, &count);
    std::vector<Item> items(count);
    if (count > 0 && items_of(partition, count, items.data()) != abi::success) items.clear();
    return items;
}

} // namespace

std::vector<std::size_t> op_ids(abi::partition partition) {
    return list_of<std::size_t>(partition, real_partition_get_op_num, real_partition_get_ops);
}

std::vector<std::size_t> input_ids(abi::partition partition) {
    return ids_of(list_of<abi::logical_tensor>(partition, real_partition_get_input_ports_num,
                                               real_partition_get_input_ports));
}

std::vector<std::size_t> output_ids(abi::partition partition) {
    return ids_of(list_of<abi::logical_tensor>(partition, real_partition_get_output_ports_num,
                                               real_partition_get_output_ports));
}

bool is_supported(abi::partition partition) {
    std::uint8_t supported = 0;
    real_partition_is_supported(partition, &supported);
    return supported != 0;
}

std::size_t partition_count(abi::const_graph graph) {
    std::size_t count = 0;
    real_graph_get_partition_num(graph, &count);
    return count;
}

std::vector<std::size_t> ids_of(const std::vector<abi::logical_tensor>& tensors) {
    std::vector<std::size_t> ids;
    std::ranges::transform(tensors, std::back_inserter(ids), &abi::logical_tensor::id);
    return ids;
}

} // namespace maskwise::onednn
