/* What the plugin exports besides oneDNN's own functions. C11 and C++; needs no oneDNN header. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct dnnl_graph_compiled_partition;

/* 1 where Maskwise executes this compiled partition, 0 where oneDNN does or the handle is null. For
 * tests and tools; a program that must also run without the plugin looks it up by dlsym. The handle
 * stays the caller's. Any thread. */
int maskwise_onednn_owns(const struct dnnl_graph_compiled_partition* compiled_partition);

#ifdef __cplusplus
}
#endif
