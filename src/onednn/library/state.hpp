#pragma once

namespace maskwise::onednn {

// Stands in the plugin's data before the text that says whether it is active; maskwise-info finds
// it in the memory of a running process.
inline constexpr const char* state_marker = "maskwise state: ";

} // namespace maskwise::onednn
