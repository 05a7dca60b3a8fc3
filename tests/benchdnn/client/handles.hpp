#pragma once

// Owning handles for the objects of oneDNN's C interface. The harness speaks C, not the C++
// wrapper, because it judges the status of every call.

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_graph.h>

#include <utility>

namespace maskwise::bench {

template <typename Handle, dnnl_status_t (*Destroy)(Handle)>
class handle {
public:
    handle() = default;
    handle(handle&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
    handle& operator=(handle&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~handle() {
        if (value_) Destroy(value_);
    }

    Handle get() const { return value_; }
    Handle* out() { return &value_; } // for a create function, on an empty handle

private:
    Handle value_ = nullptr;
};

using engine_handle = handle<dnnl_engine_t, dnnl_engine_destroy>;
using stream_handle = handle<dnnl_stream_t, dnnl_stream_destroy>;
using op_handle = handle<dnnl_graph_op_t, dnnl_graph_op_destroy>;
using graph_handle = handle<dnnl_graph_graph_t, dnnl_graph_graph_destroy>;
using partition_handle = handle<dnnl_graph_partition_t, dnnl_graph_partition_destroy>;
using compiled_handle =
    handle<dnnl_graph_compiled_partition_t, dnnl_graph_compiled_partition_destroy>;
using tensor_handle = handle<dnnl_graph_tensor_t, dnnl_graph_tensor_destroy>;

} // namespace maskwise::bench
