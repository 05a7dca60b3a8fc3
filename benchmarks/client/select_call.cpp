#include "client/select_call.hpp"

#include <dlfcn.h>

#include <chrono>

namespace maskwise::bench {
namespace {

void check(dnnl_status_t status, const std::string& call) {
    if (status != dnnl_success)
        throw refused(call + " answers status " + std::to_string(static_cast<int>(status)));
}

using owns_function = int (*)(const_dnnl_graph_compiled_partition_t);

owns_function owns() {
    static const auto found =
        reinterpret_cast<owns_function>(dlsym(RTLD_DEFAULT, "maskwise_onednn_owns"));
    return found;
}

dnnl_data_type_t type_of(const std::string& dtype) {
    if (dtype == "f32") return dnnl_f32;
    if (dtype == "bf16") return dnnl_bf16;
    if (dtype == "f16") return dnnl_f16;
    throw std::invalid_argument("oneDNN Graph's Select has no " + dtype);
}

dnnl_graph_logical_tensor_t describe(std::size_t id, dnnl_data_type_t type, const operand& o) {
    dnnl_graph_logical_tensor_t tensor;
    check(dnnl_graph_logical_tensor_init_with_strides(
              &tensor, id, type, static_cast<int>(o.extents.size()), o.extents.data(),
              o.strides_elems.data(), dnnl_graph_tensor_property_undef),
          "logical_tensor_init_with_strides");
    return tensor;
}

} // namespace

device::device() {
    check(dnnl_engine_create(&engine_, dnnl_cpu, 0), "engine_create");
    check(dnnl_stream_create(&stream_, engine_, dnnl_stream_default_flags), "stream_create");
}

device::~device() {
    dnnl_stream_destroy(stream_);
    dnnl_engine_destroy(engine_);
}

std::string onednn_version() {
    const dnnl_version_t& v = *dnnl_version();
    return std::to_string(v.major) + '.' + std::to_string(v.minor) + '.' + std::to_string(v.patch);
}

bool maskwise_in_front() {
    return owns() != nullptr;
}

select_call::select_call(const device& on, const bench_case& c, compiled when) : on_(on) {
    const dnnl_data_type_t type = type_of(c.dtype);
    tensors_ = {describe(0, dnnl_boolean, c.cond), describe(1, type, c.src_0),
                describe(2, type, c.src_1), describe(3, type, c.dst)};
    try {
        build_partition();
        if (when == compiled::now) compiled_ = compile();
    } catch (...) {
        destroy();
        throw;
    }
}

void select_call::build_partition() {
    check(dnnl_graph_graph_create(&graph_, dnnl_cpu), "graph_create");
    dnnl_graph_op_t op = nullptr;
    check(dnnl_graph_op_create(&op, 0, dnnl_graph_op_select, "select"), "op_create");
    for (std::size_t i = 0; i < 3; ++i)
        check(dnnl_graph_op_add_input(op, &tensors_[i]), "op_add_input");
    check(dnnl_graph_op_add_output(op, &tensors_[3]), "op_add_output");
    const dnnl_status_t added = dnnl_graph_add_op(graph_, op);
    dnnl_graph_op_destroy(op);
    check(added, "add_op");
    check(dnnl_graph_graph_finalize(graph_), "graph_finalize");
    check(dnnl_graph_graph_filter(graph_, dnnl_graph_partition_policy_fusion), "graph_filter");
    std::size_t count = 0;
    check(dnnl_graph_graph_get_partition_num(graph_, &count), "get_partition_num");
    if (count != 1) throw refused("a Select gives " + std::to_string(count) + " partitions");
    check(dnnl_graph_graph_get_partitions(graph_, 1, &partition_), "get_partitions");
    std::uint8_t supported = 0;
    check(dnnl_graph_partition_is_supported(partition_, &supported), "is_supported");
    if (supported == 0) throw refused("the partition is not supported");
}

dnnl_graph_compiled_partition_t select_call::compile() {
    dnnl_graph_compiled_partition_t made = nullptr;
    check(dnnl_graph_compiled_partition_create(&made, partition_), "compiled_partition_create");
    std::array<const dnnl_graph_logical_tensor_t*, 3> inputs{&tensors_[0], &tensors_[1],
                                                             &tensors_[2]};
    const dnnl_graph_logical_tensor_t* output = &tensors_[3];
    const dnnl_status_t status = dnnl_graph_partition_compile(
        partition_, made, inputs.size(), inputs.data(), 1, &output, on_.engine());
    if (status != dnnl_success) dnnl_graph_compiled_partition_destroy(made);
    check(status, "partition_compile");
    return made;
}

double select_call::time_compile(int count) {
    std::chrono::duration<double> spent{};
    for (int i = 0; i < count; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        dnnl_graph_compiled_partition_t again = compile();
        spent += std::chrono::steady_clock::now() - begin;
        dnnl_graph_compiled_partition_destroy(again);
    }
    return spent.count() / count;
}

bool select_call::is_maskwise() const {
    return owns() && owns()(compiled_) == 1;
}

void select_call::bind(const std::array<void*, 4>& buffers) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
        check(dnnl_graph_tensor_create(&bound_[i], &tensors_[i], on_.engine(), buffers[i]),
              "tensor_create");
}

void select_call::execute() {
    std::array<const_dnnl_graph_tensor_t, 3> inputs{bound_[0], bound_[1], bound_[2]};
    const_dnnl_graph_tensor_t output = bound_[3];
    check(dnnl_graph_compiled_partition_execute(compiled_, on_.stream(), inputs.size(),
                                                inputs.data(), 1, &output),
          "execute");
}

void select_call::wait() {
    check(dnnl_stream_wait(on_.stream()), "stream_wait");
}

select_call::~select_call() {
    destroy();
}

void select_call::destroy() {
    for (dnnl_graph_tensor_t tensor : bound_)
        if (tensor) dnnl_graph_tensor_destroy(tensor);
    if (compiled_) dnnl_graph_compiled_partition_destroy(compiled_);
    if (partition_) dnnl_graph_partition_destroy(partition_);
    if (graph_) dnnl_graph_graph_destroy(graph_);
}

} // namespace maskwise::bench
