#pragma once

namespace maskwise::onednn {

// Whether oneDNN is to write a file for each partition it compiles: ONEDNN_GRAPH_DUMP or
// dnnl_graph_set_dump_mode names subgraphs. For a partition that Maskwise compiles, the real
// compile is then called as well, since only it can write the file. Any thread.
bool subgraph_dump_wanted();

} // namespace maskwise::onednn
