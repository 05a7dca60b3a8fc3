#pragma once

#include "onednn/library/abi.hpp"

namespace maskwise::onednn {

// Whether Maskwise claims anything in this process: not under MASKWISE_DISABLE=1, not without a
// real library or with one of another major version, not in front of the threadpool runtime (pools
// may be asynchronous), not behind another copy of itself. Decided once, at the client's first
// call of a hooked function or at load; the verbose line about oneDNN is written then.
bool active();

// Whether what oneDNN answered so is recorded.
inline bool to_record(abi::status status) {
    return status == abi::success && active();
}

} // namespace maskwise::onednn
