#pragma once

#include "onednn/library/abi.hpp"

namespace maskwise::onednn {

// Whether Maskwise claims anything in this process. It does not
// - under MASKWISE_DISABLE=1,
// - without a real library, or with one of another major version,
// - with the threadpool runtime, whose pools may be asynchronous,
// - if another copy of the plugin gets the program's calls first.
// Decided once, at load or at the client's first call of a hooked function. The verbose line about
// oneDNN is written then.
bool active();

// Whether a call is recorded if oneDNN returned this status.
inline bool to_record(abi::status status) {
    return status == abi::success && active();
}

} // namespace maskwise::onednn
