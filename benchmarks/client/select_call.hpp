#pragma once

// One Select through oneDNN Graph's C ABI, as a program would call it: the public header and
// nothing of Maskwise, whose plugin stands in front or not.

#include "common/bench_case.hpp"
#include "common/measured_call.hpp"

#include <oneapi/dnnl/dnnl_graph.h>

#include <array>
#include <stdexcept>

namespace maskwise::bench {

// A C function that did not answer success; its name and the status are in the text.
struct refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class device {
public:
    device();
    ~device();
    device(const device&) = delete;
    device& operator=(const device&) = delete;
    dnnl_engine_t engine() const { return engine_; }
    dnnl_stream_t stream() const { return stream_; }

private:
    dnnl_engine_t engine_ = nullptr;
    dnnl_stream_t stream_ = nullptr;
};

// "3.13.2"
std::string onednn_version();
// Whether Maskwise's plugin is in this process.
bool maskwise_in_front();

class select_call : public timed_call {
public:
    enum class compiled { now, later };

    // Builds the graph and compiles it. Throws refused.
    select_call(const device& on, const bench_case& c, compiled when = compiled::now);
    ~select_call() override;

    void bind(const std::array<void*, 4>& buffers) override;
    void execute() override;
    void wait() override;
    // Seconds of dnnl_graph_partition_compile, `count` times with the same tensors.
    double time_compile(int count);
    bool is_maskwise() const; // whether Maskwise executes what was compiled

private:
    void build_partition();
    void destroy();
    dnnl_graph_compiled_partition_t compile();

    const device& on_;
    std::array<dnnl_graph_logical_tensor_t, 4> tensors_{};
    dnnl_graph_graph_t graph_ = nullptr;
    dnnl_graph_partition_t partition_ = nullptr;
    dnnl_graph_compiled_partition_t compiled_ = nullptr;
    std::array<dnnl_graph_tensor_t, 4> bound_{};
};

} // namespace maskwise::bench
