// Wrappers of oneDNN's functions, linked before oneDNN into maskwise-bench-faulty. They plant the
// fault that MASKWISE_BENCH_FAULT names. The harness must notice the fault.

#include "support/grid.hpp"
#include "support/numbers.hpp"

#include <oneapi/dnnl/dnnl_graph.h>

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

bool planted(const char* fault) {
    const char* name = std::getenv("MASKWISE_BENCH_FAULT");
    return name && std::string(name) == fault;
}

template <typename Function>
Function* real(const char* name, Function*) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct extent {
    unsigned char* data;
    std::size_t size; // bytes, if the elements are f32
    bool is_mask;
    dnnl_graph_logical_tensor_t lt;
};

std::map<const_dnnl_graph_tensor_t, extent>& tensors() {
    static std::map<const_dnnl_graph_tensor_t, extent> list;
    return list;
}

// Bytes up to the end of the last element, if elements are f32.
std::size_t byte_span(const dnnl_graph_logical_tensor_t& lt) {
    std::int64_t last = 0;
    for (int i = 0; i < lt.ndims; ++i) last += (lt.dims[i] - 1) * lt.layout.strides[i];
    return (static_cast<std::size_t>(last) + 1) * sizeof(float);
}

void* volatile lost = nullptr;

using tensor_list = std::vector<const_dnnl_graph_tensor_t>;

// Leaks memory. Writes to the memory, so that it becomes resident.
void lose_memory() {
    constexpr std::size_t bytes = 32768;
    if (!planted("leak")) return;
    lost = std::malloc(bytes);
    std::memset(lost, 1, bytes);
}

void spoil_inputs(tensor_list& inputs) {
    if (planted("swapped_source")) std::swap(inputs.at(inputs.size() - 2), inputs.back());
}

void spoil_memory(const tensor_list& inputs, const tensor_list& outputs) {
    const extent dst = tensors().at(outputs.at(0));
    if (planted("wrong_element")) dst.data[dst.size / 2 / 4 * 4 + 3] ^= 0x80; // the sign
    if (planted("wrong_bit")) dst.data[dst.size / 2] ^= 1;
    if (planted("write_past_end")) dst.data[dst.size] = 1;
    if (planted("write_in_front")) dst.data[-1] = 1;
    if (planted("write_input")) tensors().at(inputs.at(1)).data[0] ^= 1;
    if (planted("write_between")) dst.data[dst.size - 5] ^= 1; // in the gap of a view of stride 2
}

const extent* find_id(const tensor_list& list, std::size_t id) {
    const auto hit = std::find_if(list.begin(), list.end(), [id](const_dnnl_graph_tensor_t t) {
        return tensors().at(t).lt.id == id;
    });
    return hit == list.end() ? nullptr : &tensors().at(*hit);
}

namespace test = maskwise::test;

test::element element_of(const extent& e) {
    return static_cast<test::element>(e.lt.data_type); // both enumerations have oneDNN's numbers
}

std::byte* bytes_at(const extent& e, std::size_t i) {
    const auto width = static_cast<std::size_t>(test::width_bytes(element_of(e)));
    return reinterpret_cast<std::byte*>(e.data) + i * width;
}

// Reads a dense 4-D tensor as a 3-D grid, with the first two dimensions merged.
test::grid read_grid(const extent& e) {
    const auto* const dims = e.lt.dims;
    test::grid numbers{{dims[0] * dims[1], dims[2], dims[3]}, {}};
    for (std::int64_t i = 0; i < test::count_of(numbers.extents); ++i)
        numbers.values.push_back(
            test::load(bytes_at(e, static_cast<std::size_t>(i)), element_of(e)));
    return numbers;
}

// Causal attention that normalizes after the second MatMul. `rounds_weights` rounds the
// unnormalized weights to bf16.
std::vector<double> divide_late(const test::grid& query, const test::grid& key,
                                const test::grid& value, double factor, bool rounds_weights) {
    constexpr std::size_t axis = 2;
    test::grid scores = test::multiply_matrices(query, key, false, true).value();
    const test::grid rows = test::index_along(scores.extents, 1);
    const test::grid keys = test::index_along(scores.extents, axis);
    for (std::size_t i = 0; i < scores.values.size(); ++i)
        scores.values[i] = keys.values[i] <= rows.values[i] ? scores.values[i] * factor : -INFINITY;
    auto [weights, sums] = test::soft_max(scores, axis, false);
    sums = test::combine(
        sums, test::largest_along(scores, axis),
        [](double logarithm, double largest) { return std::exp(logarithm - largest); });
    weights = test::combine(weights, sums, [&](double weight, double sum) {
        return rounds_weights ? test::round_to(weight * sum, test::element::bf16) : weight * sum;
    });
    const test::grid products = test::multiply_matrices(weights, value, false, false).value();
    return test::combine(products, sums, std::divides<>()).values;
}

// The tensor ids are those of mha/causal.json: query 0, key 1, factor 2, value 4, result 12.
void spoil_rounding(const tensor_list& inputs, const tensor_list& outputs) {
    if (!planted("late_division") && !planted("early_rounding")) return;
    const extent* result = find_id(outputs, 12);
    if (!result || !find_id(inputs, 0)) return; // a single op, run for the driver's reference
    const extent& factor = *find_id(inputs, 2);
    const auto numbers =
        divide_late(read_grid(*find_id(inputs, 0)), read_grid(*find_id(inputs, 1)),
                    read_grid(*find_id(inputs, 4)),
                    test::load(bytes_at(factor, 0), element_of(factor)), planted("early_rounding"));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        test::store(bytes_at(*result, i), element_of(*result), numbers[i]);
}

// Inverts one element of the mask while the library runs.
class flipped_mask {
public:
    explicit flipped_mask(const tensor_list& inputs) {
        if (!planted("wrong_mask")) return;
        for (const const_dnnl_graph_tensor_t input : inputs)
            if (const extent e = tensors().at(input); e.is_mask) flipped_ = e.data + e.size / 4 / 2;
        if (flipped_) *flipped_ ^= 1;
    }
    ~flipped_mask() {
        if (flipped_) *flipped_ ^= 1;
    }
    flipped_mask(const flipped_mask&) = delete;
    flipped_mask& operator=(const flipped_mask&) = delete;

private:
    unsigned char* flipped_ = nullptr;
};

template <typename Execute>
dnnl_status_t execute(std::size_t inputs_num, const_dnnl_graph_tensor_t* inputs,
                      std::size_t outputs_num, const_dnnl_graph_tensor_t* outputs,
                      const Execute& run) {
    if (planted("not_executed")) return dnnl_success;
    if (planted("execute_fails")) return dnnl_runtime_error;
    tensor_list in(inputs, inputs + inputs_num);
    const tensor_list out(outputs, outputs + outputs_num);
    spoil_inputs(in);
    lose_memory();
    const flipped_mask flipped(in);
    const dnnl_status_t status = run(in.data());
    spoil_memory(in, out);
    spoil_rounding(in, out);
    return status;
}

} // namespace

// The harness finds newer functions by dlsym, so the program must export these wrappers.
#pragma GCC visibility push(default)
extern "C" {

dnnl_status_t dnnl_graph_tensor_create(dnnl_graph_tensor_t* tensor,
                                       const dnnl_graph_logical_tensor_t* lt, dnnl_engine_t engine,
                                       void* handle) {
    const auto create = real("dnnl_graph_tensor_create", &dnnl_graph_tensor_create);
    const dnnl_status_t status = create(tensor, lt, engine, handle);
    if (status == dnnl_success)
        tensors()[*tensor] = {static_cast<unsigned char*>(handle), byte_span(*lt),
                              lt->data_type == dnnl_boolean, *lt};
    return status;
}

dnnl_status_t dnnl_graph_compiled_partition_execute(const_dnnl_graph_compiled_partition_t compiled,
                                                    dnnl_stream_t stream, std::size_t inputs_num,
                                                    const_dnnl_graph_tensor_t* inputs,
                                                    std::size_t outputs_num,
                                                    const_dnnl_graph_tensor_t* outputs) {
    const auto run =
        real("dnnl_graph_compiled_partition_execute", &dnnl_graph_compiled_partition_execute);
    return execute(inputs_num, inputs, outputs_num, outputs, [&](const_dnnl_graph_tensor_t* in) {
        return run(compiled, stream, inputs_num, in, outputs_num, outputs);
    });
}

using execute_v2 = dnnl_status_t(const_dnnl_graph_compiled_partition_t, dnnl_stream_t, std::size_t,
                                 const_dnnl_graph_tensor_t*, std::size_t,
                                 const_dnnl_graph_tensor_t*, const_dnnl_graph_tensor_t);

// Older headers do not declare this function.
dnnl_status_t dnnl_graph_compiled_partition_execute_v2(
    const_dnnl_graph_compiled_partition_t compiled, dnnl_stream_t stream, std::size_t inputs_num,
    const_dnnl_graph_tensor_t* inputs, std::size_t outputs_num, const_dnnl_graph_tensor_t* outputs,
    const_dnnl_graph_tensor_t scratchpad) {
    auto* run =
        reinterpret_cast<execute_v2*>(dlsym(RTLD_NEXT, "dnnl_graph_compiled_partition_execute_v2"));
    return execute(inputs_num, inputs, outputs_num, outputs, [&](const_dnnl_graph_tensor_t* in) {
        return run(compiled, stream, inputs_num, in, outputs_num, outputs, scratchpad);
    });
}

dnnl_status_t
dnnl_graph_partition_compile(dnnl_graph_partition_t partition,
                             dnnl_graph_compiled_partition_t compiled, std::size_t in_num,
                             const dnnl_graph_logical_tensor_t** inputs, std::size_t out_num,
                             const dnnl_graph_logical_tensor_t** outputs, dnnl_engine_t engine) {
    if (planted("wrong_status")) return dnnl_runtime_error;
    if (planted("wrong_invalid")) return dnnl_invalid_arguments;
    const auto compile = real("dnnl_graph_partition_compile", &dnnl_graph_partition_compile);
    return compile(partition, compiled, in_num, inputs, out_num, outputs, engine);
}

// Policy debug never fuses: every op becomes a partition.
dnnl_status_t dnnl_graph_graph_filter(dnnl_graph_graph_t graph,
                                      dnnl_graph_partition_policy_t policy) {
    if (planted("partition_count")) policy = dnnl_graph_partition_policy_debug;
    return real("dnnl_graph_graph_filter", &dnnl_graph_graph_filter)(graph, policy);
}

} // extern "C"
#pragma GCC visibility pop
