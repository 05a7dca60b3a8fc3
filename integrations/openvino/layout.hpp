#pragma once

namespace maskwise::openvino {

// Throws std::runtime_error if a class of the loaded OpenVINO differs in layout from the headers
// that this library was compiled with. One library serves every release with the same layouts.
void check_layout();

} // namespace maskwise::openvino
