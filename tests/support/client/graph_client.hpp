#pragma once

// A client of oneDNN Graph's C API that builds graphs and executes partitions like a framework. The
// client calls only one function of Maskwise, which tells whether Maskwise executes a partition.

#include "support/client/tensors.hpp"

#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace maskwise::test {

using attribute_value =
    std::variant<std::vector<std::int64_t>, std::vector<float>, float, bool, std::string>;
using attribute_list = std::vector<std::pair<dnnl_graph_op_attr_t, attribute_value>>;

struct node {
    std::size_t id;
    dnnl_graph_op_kind_t kind;
    std::vector<logical_tensor> inputs, outputs;
    attribute_list attributes = {};
    std::string name = "an operator with a name"; // too long for the small-string buffer
};

// A Select of dense tensors. Ids: 0 cond, 1 src_0, 2 src_1, 3 dst. All are f32 except cond.
node select_of(const dims& cond, const dims& src_0, const dims& src_1, const dims& dst);

struct handle_deleter {
    void operator()(dnnl_graph_graph_t handle) const { dnnl_graph_graph_destroy(handle); }
    void operator()(dnnl_graph_op_t handle) const { dnnl_graph_op_destroy(handle); }
    void operator()(dnnl_graph_partition_t handle) const { dnnl_graph_partition_destroy(handle); }
    void operator()(dnnl_graph_compiled_partition_t handle) const {
        dnnl_graph_compiled_partition_destroy(handle);
    }
    void operator()(dnnl_graph_tensor_t handle) const { dnnl_graph_tensor_destroy(handle); }
};
template <typename Handle>
using owned = std::unique_ptr<std::remove_pointer_t<Handle>, handle_deleter>;
using owned_graph = owned<dnnl_graph_graph_t>;
using owned_partition = owned<dnnl_graph_partition_t>;
using owned_compiled = owned<dnnl_graph_compiled_partition_t>;
using owned_tensor = owned<dnnl_graph_tensor_t>;

// Usually, a client continues after a call returns an error. While a failures_are_thrown exists, an
// error or exception of a call becomes a failed_call.
struct failed_call : std::runtime_error {
    failed_call(const char* called, dnnl_status_t answer);
    failed_call(const char* called, const std::exception& thrown);

    std::string function;
    dnnl_status_t status;
    bool has_thrown; // whether the C function threw a C++ exception
};
class failures_are_thrown {
public:
    failures_are_thrown();
    ~failures_are_thrown();
    failures_are_thrown(const failures_are_thrown&) = delete;
    failures_are_thrown& operator=(const failures_are_thrown&) = delete;
};

void note_failure(const char* function, dnnl_status_t status);
[[noreturn]] void note_exception(const char* function, const std::exception& thrown);

// Runs one call. Inline, because calls are timed.
template <typename Run>
dnnl_status_t call(const char* function, const Run& run) {
    dnnl_status_t status = dnnl_success;
    try {
        status = run();
    } catch (const std::exception& thrown) {
        note_exception(function, thrown);
    }
    if (status != dnnl_success) note_failure(function, status);
    return status;
}

// Calls create(&handle) and owns the object. A failed call may have created an object, too.
template <typename Handle, typename Create>
owned<Handle> make(const char* function, const Create& create) {
    owned<Handle> result;
    call(function, [&] {
        Handle handle = nullptr;
        const dnnl_status_t status = create(&handle);
        result.reset(handle);
        return status;
    });
    return result;
}

// The engine and stream of the process, created at first use.
dnnl_engine_t cpu_engine();
dnnl_stream_t cpu_stream();

// Whether the plugin is loaded in this process, and whether MASKWISE_EXPECT says that the plugin
// must be loaded.
bool plugin_is_loaded();
bool plugin_expected();
// Whether Maskwise executes this compiled partition; false without the plugin.
bool maskwise_owns(const_dnnl_graph_compiled_partition_t compiled);

owned<dnnl_graph_op_t> make_op(const node& spec);
owned_graph make_graph(); // empty, not finalized

// A finalized graph with all nodes. Each operator is destroyed after it was added.
owned_graph build(const std::vector<node>& nodes);

// Filters the graph and gets its partitions.
std::vector<owned_partition>
partitions_of(dnnl_graph_graph_t graph,
              dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion);

std::vector<std::size_t> ops_of(dnnl_graph_partition_t partition);
std::vector<logical_tensor> inputs_of(dnnl_graph_partition_t partition);
std::vector<logical_tensor> outputs_of(dnnl_graph_partition_t partition);
bool is_supported(dnnl_graph_partition_t partition);

owned_compiled make_compiled(dnnl_graph_partition_t partition); // an object to compile into
dnnl_status_t compile_into(dnnl_graph_compiled_partition_t compiled,
                           dnnl_graph_partition_t partition,
                           const std::vector<logical_tensor>& inputs,
                           const std::vector<logical_tensor>& outputs,
                           dnnl_engine_t engine = cpu_engine());
// Null unless compile returns success.
owned_compiled compile(dnnl_graph_partition_t partition, const std::vector<logical_tensor>& inputs,
                       const std::vector<logical_tensor>& outputs,
                       dnnl_engine_t engine = cpu_engine());
// The compiled partition's description of each tensor.
std::vector<logical_tensor> queried(dnnl_graph_compiled_partition_t compiled,
                                    const std::vector<logical_tensor>& tensors);

// A tensor at this memory. A host scalar copies the value.
owned_tensor tensor_at(const logical_tensor& desc, void* data);

using memory = std::map<std::size_t, std::vector<std::uint8_t>>; // by tensor id

// Tensors bound by id to the buffers in `bytes`. Creates and fills missing buffers.
class bound_tensors {
public:
    bound_tensors(const std::vector<logical_tensor>& tensors, memory& bytes);
    std::size_t size() const { return handles_.size(); }
    const_dnnl_graph_tensor_t* data() { return handles_.data(); }

private:
    std::vector<owned_tensor> owners_;
    std::vector<const_dnnl_graph_tensor_t> handles_;
};

// Executes the partition on tensors with these descriptions, and waits.
dnnl_status_t execute(dnnl_graph_compiled_partition_t compiled,
                      const std::vector<logical_tensor>& inputs,
                      const std::vector<logical_tensor>& outputs, memory& bytes,
                      dnnl_stream_t stream = cpu_stream());

// Runs the whole graph on filled inputs and returns every tensor's bytes. If this oneDNN does not
// support a Select alone, the reference computes the Select. Returns an empty map on failure.
memory run_graph(const std::vector<node>& nodes,
                 dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion);

// Computes dst of a Select by the reference. Fills missing inputs.
void select_by_reference(const node& select, memory& bytes);

} // namespace maskwise::test
