#pragma once

// The oneDNN that this process got, and what is in front of it.

#include "client/handles.hpp"
#include "model/graph.hpp"

#include <exception>
#include <string>

namespace maskwise::bench {

// A call of the C interface that did not end with success.
struct call_failed : std::runtime_error {
    call_failed(std::string function, int code, const std::string& text)
        : std::runtime_error(text), call(std::move(function)), status(code) {}
    std::string call;
    int status; // escaped: an exception came out of the C function
    static constexpr int escaped = -1;
};

[[noreturn]] void throw_escaped(const char* function, const std::exception& error);
[[noreturn]] void throw_refused(const char* function, dnnl_status_t status);

// Runs one C call; throws call_failed unless it answers success. Inline: it is timed.
template <typename Run>
void call(const char* function, const Run& run) {
    dnnl_status_t status = dnnl_success;
    try {
        status = run();
    } catch (const std::exception& error) {
        throw_escaped(function, error);
    }
    if (status != dnnl_success) throw_refused(function, status);
}

class library {
public:
    library();

    dnnl_engine_t engine() const { return engine_.get(); }
    dnnl_stream_t stream() const { return stream_.get(); }
    int minor() const { return dnnl_version()->minor; }
    std::string description() const; // "oneDNN 3.13.2 (CPU runtime SYCL, AVX2), Maskwise in front"
    bool maskwise_in_front() const { return owns_ != nullptr; }

    // Whether Maskwise executes this compiled partition.
    bool maskwise_owns(const_dnnl_graph_compiled_partition_t compiled) const;

    // Why this library must not be given the graph (an operator, attribute or property that it
    // lacks), or empty. Asked before add_op, which crashes on operators it does not know.
    std::string lacks(const graph& g) const;

    // Null in libraries older than the function.
    using set_fpmath = dnnl_status_t (*)(dnnl_graph_graph_t, dnnl_fpmath_mode_t, int);
    using create_scalar = dnnl_status_t (*)(dnnl_graph_tensor_t*,
                                            const dnnl_graph_logical_tensor_t*, void*);
    using execute_v2 = dnnl_status_t (*)(const_dnnl_graph_compiled_partition_t, dnnl_stream_t,
                                         std::size_t, const_dnnl_graph_tensor_t*, std::size_t,
                                         const_dnnl_graph_tensor_t*, const_dnnl_graph_tensor_t);
    using query_scratchpad = dnnl_status_t (*)(const_dnnl_graph_compiled_partition_t,
                                               dnnl_graph_logical_tensor_t*);
    set_fpmath graph_set_fpmath_mode;
    create_scalar tensor_create_scalar;
    execute_v2 compiled_partition_execute_v2;
    query_scratchpad compiled_partition_get_scratchpad;

private:
    using owns_query = int (*)(const_dnnl_graph_compiled_partition_t);
    owns_query owns_;
    engine_handle engine_;
    stream_handle stream_;
};

// Whether the CPU, or ONEDNN_MAX_CPU_ISA, lacks what oneDNN needs for the type, so that
// "unsupported" is no fault.
bool machine_lacks(data_type type);

} // namespace maskwise::bench
