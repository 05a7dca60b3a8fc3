#pragma once

namespace maskwise::onednn {

// Whether Maskwise claims anything in this process: not under MASKWISE_DISABLE=1, not without a
// real library, not in front of the threadpool runtime, whose pools may be asynchronous. Decided
// once.
bool active();

} // namespace maskwise::onednn
