#pragma once

namespace maskwise::onednn {

// maskwise-info PID: prints the plugin and the libdnnl of a running process, and whether the plugin
// is active there. Throws maskwise::error if the process does not exist or may not be read. Linux's
// rules of ptrace apply.
int print_process(int pid);

} // namespace maskwise::onednn
