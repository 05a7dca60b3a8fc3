#pragma once

namespace maskwise::openvino {

// Throws std::runtime_error if the loaded OpenVINO has laid out a class otherwise than the headers
// that this library was compiled with: one library serves every release, also those after it.
void check_layout();

} // namespace maskwise::openvino
