#pragma once

namespace maskwise::onednn {

// The verbose lines and dump files that the client requests from oneDNN. The plugin reads the
// environment once (ONEDNN_..., else DNNL_...). A call of oneDNN's function overrides the
// environment. Any thread may call these functions.

// Whether ONEDNN_VERBOSE or dnnl_set_verbose requests lines, which the plugin then prints for
// Maskwise's partitions, too. Maskwise ignores component filters and VERBOSE_TIMESTAMP.
bool exec_lines_wanted();
bool compile_lines_wanted();

// Whether ONEDNN_GRAPH_DUMP or dnnl_graph_set_dump_mode makes oneDNN write a file for each
// partition that it compiles. The plugin then also calls the real compile for Maskwise's
// partitions, because only oneDNN can write the file.
bool subgraph_dump_wanted();

} // namespace maskwise::onednn
