/* Functions that the plugin exports besides oneDNN's own. C11 and C++; needs no oneDNN header. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct dnnl_graph_compiled_partition;

/* Returns 1 if Maskwise executes this compiled partition, 0 if oneDNN does or the handle is null.
 * For tests and tools. A program that must also run without the plugin finds the function by dlsym.
 * The caller keeps ownership of the handle. Thread-safe. */
int maskwise_onednn_owns(const struct dnnl_graph_compiled_partition* compiled_partition);

#ifdef __cplusplus
}
#endif
