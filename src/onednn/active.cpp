#include "onednn/active.hpp"

#include "base/environment.hpp"
#include "onednn/real_library.hpp"

namespace maskwise::onednn {

bool active() {
    static const bool answer = read_environment_number("MASKWISE_DISABLE") == 0 && real().found() &&
                               real().version.cpu_runtime != abi::runtime_threadpool;
    return answer;
}

} // namespace maskwise::onednn
