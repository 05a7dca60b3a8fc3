#pragma once

namespace maskwise::onednn {

// The verbose lines and dump files that the client requests from oneDNN. Functions of oneDNN take
// precedence over the environment (ONEDNN_..., else DNNL_...), which is read once. Any thread may
// call the functions below.

// Whether to print lines for Maskwise's partitions (ONEDNN_VERBOSE or dnnl_set_verbose). Ignores
// component filters and VERBOSE_TIMESTAMP.
bool exec_lines_wanted();
bool compile_lines_wanted();

// Whether ONEDNN_GRAPH_DUMP or dnnl_graph_set_dump_mode makes oneDNN dump compiled partitions. The
// plugin then also calls the real compile for Maskwise's partitions, because only oneDNN can write
// the file.
bool subgraph_dump_wanted();

} // namespace maskwise::onednn
