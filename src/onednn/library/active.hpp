#pragma once

#include "onednn/library/abi.hpp"

namespace maskwise::onednn {

// Whether Maskwise may claim anything in this process. It claims nothing
// - under MASKWISE_DISABLE=1,
// - if no oneDNN with the Graph API is loaded besides the plugin,
// - if this oneDNN is older than 3.2 or newer than 3.x,
// - with the threadpool runtime, whose pools may be asynchronous,
// - if another copy of the plugin gets the program's calls first.
// The first call decides for the process, and prints the load line if verbose lines are on and
// oneDNN was found.
bool active();

// Whether the plugin records a call for which oneDNN returned `status`.
inline bool to_record(abi::status status) {
    return status == abi::success && active();
}

} // namespace maskwise::onednn
