#include "onednn/partition/partition_list.hpp"

#include "onednn/library/real_library.hpp"
#include "onednn/record/tables.hpp"

namespace maskwise::onednn {

void destroy(std::span<abi::partition> partitions) {
    for (abi::partition& partition : partitions) {
        if (partition == nullptr) continue;
        tables().claims.erase(partition);
        call_real(&real_library::partition_destroy, partition);
        partition = nullptr;
    }
}

} // namespace maskwise::onednn
