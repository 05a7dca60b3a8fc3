#pragma once

// The abilities of this process's oneDNN on this CPU, by its public API. Tests choose their
// expectations by them.

#include "oneapi/dnnl/dnnl_graph.h"

namespace maskwise::test {

// Queried once, without a Select, so that the answers are oneDNN's even with the plugin loaded.
struct library_facts {
    int minor = 0; // version of oneDNN 3
    bool avx512 = false;
    bool bf16 = false, f16 = false; // whether it runs a MatMul of this type
};
const library_facts& library();

bool is_sycl();

// Older versions have Select in their headers, but do not support it.
inline bool knows_select() {
    return library().minor >= 5;
}

// Whether oneDNN creates one partition from a MatMul and the mask of its scores.
inline bool fuses_attention() {
    return library().minor >= 8;
}

// Whether single-operator partitions are merged around a Select (policy fusion).
bool merges();

// Whether the operator compiles as a single partition. The partition belongs to that graph.
bool runs_alone(dnnl_graph_op_t op);

} // namespace maskwise::test
