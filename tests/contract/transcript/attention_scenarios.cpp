// oneDNN makes one partition of a MatMul and the Select that masks its scores. Maskwise runs this
// partition if it can. The results must equal oneDNN's for all tensors that compile receives.

#include "select_graph.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace maskwise::contract {
namespace {

constexpr auto f32 = dnnl_f32;
constexpr auto boolean = dnnl_boolean;
constexpr std::int64_t unknown = DNNL_GRAPH_UNKNOWN_DIM;
constexpr std::size_t query = 10, key = 11, scores = 12, factor = 13, scaled = 14, mask = 15,
                      fill = 16, result = 17, masked = 18, weights = 19, value = 20, row = 21,
                      column = 22, plus = 23, minus = 24, moved = 25, back = 26;
const dims matrix{2, 4, 8};

// The tensors passed to compile. Some differ from the graph's.
struct attention_case {
    const char* name;
    std::vector<logical_tensor> inputs, outputs;
};

std::vector<logical_tensor> graph_inputs() {
    return {dense(query, f32, matrix), dense(key, f32, {2, 8, 8}), dense(factor, f32, {1}),
            dense(mask, boolean, {8}), dense(fill, f32, {1})};
}

logical_tensor changed_by(const std::vector<logical_tensor>& changes, logical_tensor tensor) {
    for (const auto& change : changes)
        if (change.id == tensor.id) tensor = change;
    return tensor;
}

attention_case with(const char* name, const std::vector<logical_tensor>& changes) {
    attention_case changed{name, graph_inputs(), {changed_by(changes, dense(result, f32, matrix))}};
    for (auto& input : changed.inputs) input = changed_by(changes, input);
    return changed;
}

logical_tensor layout_undef(const logical_tensor& tensor) {
    return with_layout(tensor, dnnl_graph_layout_type_undef);
}

logical_tensor layout_opaque(const logical_tensor& tensor) {
    return with_layout(tensor, dnnl_graph_layout_type_opaque);
}

const std::vector<attention_case>& cases() {
    static const std::vector<attention_case> list = {
        with("as_in_the_graph", {}),
        with("result_any", {any_layout(result, f32, matrix)}),
        with("result_undef", {layout_undef(dense(result, f32, matrix))}),
        with("result_opaque", {layout_opaque(dense(result, f32, matrix))}),
        with("result_permuted", {strided(result, f32, matrix, {4, 1, 8})}),
        with("result_padded", {strided(result, f32, matrix, {64, 16, 1})}),
        with("result_batch_inside", {strided(result, f32, matrix, {8, 16, 1})}),
        with("result_rows_overlap", {strided(result, f32, matrix, {32, 4, 1})}),
        with("result_extent_unknown_any", {any_layout(result, f32, {2, unknown, 8})}),
        with("result_wrong_extent", {dense(result, f32, {2, 5, 8})}),
        with("result_wrong_rank", {dense(result, f32, {1, 2, 4, 8})}),
        with("result_bf16", {dense(result, dnnl_bf16, matrix)}),
        with("mask_any", {any_layout(mask, boolean, {8})}),
        with("mask_undef", {layout_undef(dense(mask, boolean, {8}))}),
        with("mask_full", {dense(mask, boolean, matrix)}),
        with("mask_column", {dense(mask, boolean, {4, 1})}),
        with("mask_one", {dense(mask, boolean, {1})}),
        with("mask_step_2", {strided(mask, boolean, {8}, {2})}),
        with("mask_stride_0", {strided(mask, boolean, {8}, {0})}),
        with("mask_extent_unknown", {dense(mask, boolean, {unknown})}),
        with("mask_negative_extent", {dense(mask, boolean, {-8})}),
        with("mask_s8", {dense(mask, dnnl_s8, {8})}),
        with("fill_any", {any_layout(fill, f32, {1})}),
        with("fill_undef", {layout_undef(dense(fill, f32, {1}))}),
        with("fill_rank_0", {dense(fill, f32, {})}),
        with("fill_row", {dense(fill, f32, {8})}),
        with("fill_row_any", {any_layout(fill, f32, {8})}),
        with("fill_row_undef", {layout_undef(dense(fill, f32, {8}))}),
        with("fill_full_permuted", {strided(fill, f32, matrix, {4, 1, 8})}),
        with("fill_larger", {dense(fill, f32, {3, 2, 4, 8})}),
        with("fill_bf16", {dense(fill, dnnl_bf16, {1})}),
        with("factor_row_any", {any_layout(factor, f32, {8})}),
        with("factor_larger", {dense(factor, f32, {5, 1, 1, 1})}),
        with("query_undef", {layout_undef(dense(query, f32, matrix))}),
        with("query_permuted", {strided(query, f32, matrix, {4, 1, 8})}),
        with("other_batch", {dense(query, f32, {3, 4, 8}), dense(key, f32, {3, 8, 8}),
                             dense(result, f32, {3, 4, 8})}),
        with("more_rows", {dense(query, f32, {2, 6, 8}), dense(result, f32, {2, 6, 8})}),
        with("no_rows", {dense(query, f32, {2, 0, 8}), dense(result, f32, {2, 0, 8})}),
        with("key_does_not_fit", {dense(key, f32, {2, 7, 8})}),
    };
    return list;
}

void run_scores(const transcript& out, const void* data) {
    const auto& problem = *static_cast<const attention_case*>(data);
    const auto in = graph_inputs();
    const auto product = dense(scores, f32, matrix), quotient = dense(scaled, f32, matrix);
    const auto graph =
        build({{1, dnnl_graph_op_matmul, {in[0], in[1]}, {product}},
               {2, dnnl_graph_op_divide, {product, in[2]}, {quotient}},
               {3, dnnl_graph_op_select, {in[3], quotient, in[4]}, {dense(result, f32, matrix)}}});
    const auto partitions = partitions_of(graph.get(), dnnl_graph_partition_policy_fusion);
    out.note("partitions", static_cast<std::int64_t>(partitions.size()));
    if (partitions.size() != 1 || !is_supported(partitions[0].get())) return;
    compile_and_execute(out, partitions[0].get(), problem.inputs, problem.outputs);
}

// Causal attention. `plus` and `minus` shift the causal boundary. `in_graph` changes tensors of the
// graph, and `at_compile` changes tensors passed to compile.
struct causal_case {
    const char* name;
    std::vector<logical_tensor> in_graph, at_compile;
    bool has_outputs = true;
};

const dims square{1, 2, 8, 8};

const std::vector<causal_case>& causal_cases() {
    static const std::vector<causal_case> list = {
        {"as_in_the_graph", {}, {}},
        {"offset_row", {dense(plus, dnnl_s32, {8})}, {dense(plus, dnnl_s32, {8})}},
        {"offset_row_at_compile", {}, {dense(plus, dnnl_s32, {8})}},
        {"offset_unknown_rank",
         {unknown_rank(plus, dnnl_s32)},
         {dense(plus, dnnl_s32, {1, 1, 8, 8})}},
        {"offset_any", {}, {any_layout(plus, dnnl_s32, {1})}},
        {"offset_rank_0", {}, {dense(minus, dnnl_s32, {})}},
        {"fill_row_any", {}, {any_layout(fill, f32, {8})}},
        {"fill_undef", {}, {layout_undef(dense(fill, f32, {1}))}},
        {"result_any", {}, {any_layout(result, f32, square)}},
        {"result_undef", {}, {layout_undef(dense(result, f32, square))}},
        {"result_permuted", {}, {strided(result, f32, square, {128, 8, 16, 1})}},
        {"no_outputs", {}, {}, false},
    };
    return list;
}

// Names GenIndex and GreaterEqual by number, because older headers lack both.
owned_graph causal_graph(const std::vector<logical_tensor>& changes) {
    constexpr auto gen_index = static_cast<dnnl_graph_op_kind_t>(84);
    constexpr auto greater_equal = static_cast<dnnl_graph_op_kind_t>(85);
    const auto real = [&](std::size_t id) { return changed_by(changes, dense(id, f32, square)); };
    const auto index = [&](std::size_t id) { return dense(id, dnnl_s32, square); };
    const auto one = [&](std::size_t id, dnnl_data_type_t type) {
        return changed_by(changes, dense(id, type, {1}));
    };
    const auto cond = dense(mask, boolean, square);
    const auto axis = [](std::int64_t number) {
        return attribute_list{{dnnl_graph_op_attr_axis, std::vector{number}}};
    };
    return build({
        {1, dnnl_graph_op_matmul, {real(query), real(key)}, {real(scores)}},
        {2, dnnl_graph_op_divide, {real(scores), one(factor, f32)}, {real(scaled)}},
        {3, gen_index, {real(scaled)}, {index(row)}, axis(-2)},
        {4, dnnl_graph_op_add, {index(row), one(plus, dnnl_s32)}, {index(moved)}},
        {5, dnnl_graph_op_subtract, {index(moved), one(minus, dnnl_s32)}, {index(back)}},
        {6, gen_index, {real(scaled)}, {index(column)}, axis(-1)},
        {7, greater_equal, {index(back), index(column)}, {cond}},
        {8, dnnl_graph_op_select, {cond, real(scaled), one(fill, f32)}, {real(masked)}},
        {9, dnnl_graph_op_softmax, {real(masked)}, {real(weights)}, axis(-1)},
        {10, dnnl_graph_op_matmul, {real(weights), real(value)}, {real(result)}},
    });
}

template <typename Number>
void set_all(memory& bytes, const logical_tensor& tensor, Number first, Number step) {
    auto& buffer = bytes[tensor.id] = filled_buffer(tensor);
    for (std::size_t i = 0; i * sizeof(Number) < buffer.size(); ++i, first += step)
        std::memcpy(&buffer[i * sizeof(Number)], &first, sizeof(Number));
}

// Scores are 0 and the fill is -1e30, so masked values have no weight. A row of the result is the
// mean of its unmasked values.
memory causal_inputs(const std::vector<logical_tensor>& inputs) {
    memory bytes;
    for (const auto& tensor : inputs) {
        if (tensor.id == query) set_all(bytes, tensor, 0.0F, 0.0F);
        if (tensor.id == factor) set_all(bytes, tensor, 2.0F, 0.0F);
        if (tensor.id == fill) set_all(bytes, tensor, -1e30F, 0.0F);
        if (tensor.id == plus) set_all(bytes, tensor, std::int32_t{1}, std::int32_t{1});
        if (tensor.id == minus) set_all(bytes, tensor, std::int32_t{0}, std::int32_t{0});
    }
    return bytes;
}

// Hashes means of up to eight integers. Exact means are multiples of 1/840. Rounding to these
// multiples removes rounding errors.
std::string text_of_means(const std::vector<std::uint8_t>& bytes) {
    std::vector<std::uint8_t> means;
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        float mean = 0;
        std::memcpy(&mean, &bytes[i], 4);
        const auto rounded = static_cast<std::uint32_t>(std::lround(mean * 840.0));
        for (int byte = 0; byte < 4; ++byte)
            means.push_back(static_cast<std::uint8_t>(rounded >> (8 * byte)));
    }
    return std::to_string(hash_of(means));
}

void run_causal(const transcript& out, const void* data) {
    const auto& problem = *static_cast<const causal_case*>(data);
    const auto* version = dnnl_version();
    if (version->major == 3 && version->minor < 7) return; // add_op may crash
    const auto graph = causal_graph(problem.in_graph);
    const auto partitions = partitions_of(graph.get(), dnnl_graph_partition_policy_fusion);
    out.note("partitions", static_cast<std::int64_t>(partitions.size()));
    if (partitions.size() != 1) return;
    auto inputs = inputs_of(partitions[0].get());
    auto outputs =
        problem.has_outputs ? outputs_of(partitions[0].get()) : std::vector<logical_tensor>();
    for (auto* list : {&inputs, &outputs})
        for (auto& each : *list) each = changed_by(problem.at_compile, each);
    const auto compiled = compile(partitions[0].get(), inputs, outputs);
    out.note("compiled", compiled != nullptr);
    if (!compiled) return;
    auto& answer = outputs[0];
    dnnl_graph_compiled_partition_query_logical_tensor(compiled.get(), result, &answer);
    out.note("query", text_of(answer));
    memory bytes = causal_inputs(inputs);
    out.status("execute", execute(compiled.get(), inputs, outputs, bytes));
    out.note("means", text_of_means(bytes[result]));
}

} // namespace

void add_attention_scenarios(std::vector<scenario>& all) {
    for (const auto& problem : cases())
        all.push_back({std::string("attention/") + problem.name, run_scores, &problem});
    for (const auto& problem : causal_cases())
        all.push_back({std::string("causal/") + problem.name, run_causal, &problem});
}

} // namespace maskwise::contract
