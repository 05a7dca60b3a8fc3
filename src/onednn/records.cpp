#include "onednn/records.hpp"

namespace maskwise::onednn {

side_tables& tables() {
    static auto* const instance = new side_tables;
    return *instance;
}

} // namespace maskwise::onednn
