#pragma once

// What this process's oneDNN supports on this CPU, according to oneDNN's public API. Determines the
// results that tests expect.

#include "oneapi/dnnl/dnnl_graph.h"

namespace maskwise::test {

// Queried once, without a Select, so that oneDNN answers even if the plugin is loaded.
struct library_facts {
    int minor = 0; // version of oneDNN 3
    bool avx512 = false;
    bool bf16 = false, f16 = false; // whether oneDNN runs a MatMul of this type
};
const library_facts& library();

bool is_sycl();

// Older oneDNN has Select in its headers but does not support Select.
inline bool knows_select() {
    return library().minor >= 5;
}

// Whether oneDNN creates one partition from a MatMul and the mask of its scores.
inline bool fuses_attention() {
    return library().minor >= 8;
}

// Whether the plugin merges single-operator partitions around a Select (policy fusion).
bool merges();

// Whether the operator compiles as a single partition. Adds the operator to a temporary graph, so
// the operator must not belong to another graph.
bool runs_alone(dnnl_graph_op_t op);

} // namespace maskwise::test
