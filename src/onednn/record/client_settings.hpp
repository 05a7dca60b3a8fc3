#pragma once

namespace maskwise::onednn {

// What the client wants oneDNN to tell; the plugin tells the same of its own partitions. The
// environment is read once (ONEDNN_..., else DNNL_...), and a call of oneDNN's overrides it. Any
// thread.

// Verbose lines: ONEDNN_VERBOSE, dnnl_set_verbose. Component filters and VERBOSE_TIMESTAMP are
// honoured by oneDNN only.
bool exec_lines_wanted();
bool compile_lines_wanted();

// A file for each partition that oneDNN compiles: ONEDNN_GRAPH_DUMP or dnnl_graph_set_dump_mode
// names subgraphs. For a partition that Maskwise compiles, the real compile is then called as well,
// since only it can write the file.
bool subgraph_dump_wanted();

} // namespace maskwise::onednn
