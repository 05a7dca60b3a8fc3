#pragma once

namespace maskwise::onednn {

// The lines and files that the client wants from oneDNN; the plugin writes them for its partitions,
// too. The environment is read once (ONEDNN_..., else DNNL_...), and a call of oneDNN's function
// overrides it. Any thread.

// Verbose lines: ONEDNN_VERBOSE, dnnl_set_verbose. Only oneDNN honours component filters and
// VERBOSE_TIMESTAMP.
bool exec_lines_wanted();
bool compile_lines_wanted();

// Whether oneDNN writes a file for each partition that it compiles: ONEDNN_GRAPH_DUMP or
// dnnl_graph_set_dump_mode names subgraphs. The plugin then also calls the real compile for its
// partitions, because only oneDNN can write the file.
bool subgraph_dump_wanted();

} // namespace maskwise::onednn
