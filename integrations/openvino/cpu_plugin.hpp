#pragma once

namespace maskwise::openvino {

// Whether OpenVINO's CPU plugin has called, through whatever lies between. It clones each model
// that it compiles, by the same functions as everybody else.
bool is_called_by_cpu_plugin();

} // namespace maskwise::openvino
