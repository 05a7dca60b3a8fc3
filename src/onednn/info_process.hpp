#pragma once

namespace maskwise::onednn {

// maskwise-info PID: prints the plugin and the libdnnl of a running process, and whether the plugin
// is active there. Throws maskwise::error if the process does not exist, or if Linux's ptrace rules
// forbid reading it.
int print_process(int pid);

} // namespace maskwise::onednn
