// Results of compile, query and execute for one Select: shapes, layouts and wrong descriptions.

#include "select_graph.hpp"

namespace maskwise::contract {
namespace {

constexpr auto f32 = dnnl_f32;
constexpr auto boolean = dnnl_boolean;
constexpr std::int64_t unknown = DNNL_GRAPH_UNKNOWN_DIM;

// A dense f32 Select of these shapes.
select_case shapes(const dims& cond, const dims& src_0, const dims& src_1, const dims& dst,
                   std::string auto_broadcast = "") {
    return {dense(cond_id, boolean, cond), dense(src_0_id, f32, src_0), dense(src_1_id, f32, src_1),
            dense(dst_id, f32, dst), std::move(auto_broadcast)};
}

select_case with_type(dnnl_data_type_t type) {
    const dims all{2, 3, 4};
    return {dense(cond_id, boolean, all), dense(src_0_id, type, all), dense(src_1_id, type, all),
            dense(dst_id, type, all), ""};
}

select_case with_unknown_dst(const select_case& base) {
    select_case changed = base;
    changed.dst = unknown_rank(dst_id, f32);
    return changed;
}

select_case with_open_dst(const select_case& base) {
    select_case changed = with_unknown_dst(base);
    changed.dst.layout_type = dnnl_graph_layout_type_any;
    return changed;
}

const std::vector<named_case>& legal_cases() {
    static const std::vector<named_case> cases = {
        {"same_shapes", shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4})},
        {"none_same_shapes", shapes({2, 3}, {2, 3}, {2, 3}, {2, 3}, "none")},
        {"numpy_spelled_out", shapes({2, 3}, {2, 3}, {2, 3}, {2, 3}, "numpy")},
        {"cond_row", shapes({4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4})},
        {"cond_column", shapes({3, 1}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4})},
        {"cond_scalar", shapes({}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4})},
        {"specification_first", shapes({4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5})},
        {"specification_second", shapes({3, 1, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5})},
        {"src_0_scalar", shapes({2, 3, 4}, {1}, {2, 3, 4}, {2, 3, 4})},
        {"src_1_rank_0", shapes({2, 3, 4}, {2, 3, 4}, {}, {2, 3, 4})},
        {"two_way", shapes({2, 3, 4}, {2, 1, 4}, {3, 1}, {2, 3, 4})},
        {"everything_rank_0", shapes({}, {}, {}, {})},
        {"everything_one", shapes({1}, {1}, {1}, {1})},
        {"rank_12",
         shapes({2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 3}, {2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 3}, {3},
                {2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 3})},
        {"zero_extent", shapes({0, 3}, {0, 3}, {0, 3}, {0, 3})},
        {"zero_extent_broadcast", shapes({3}, {0, 1}, {1, 3}, {0, 3})},
        {"dst_rank_unknown", with_unknown_dst(shapes({4}, {2, 3, 4}, {1}, {}))},
        {"dst_extent_unknown", with_tensor(dense(dst_id, f32, {2, unknown, 4}))},
        {"dst_rank_unknown_any", with_open_dst(shapes({4}, {2, 3, 4}, {1}, {}))},
        {"dst_extent_unknown_any", with_tensor(any_layout(dst_id, f32, {2, unknown, 4}))},
        {"dst_any", with_tensor(any_layout(dst_id, f32, {2, 3, 4}))},
        {"src_0_permuted", with_tensor(strided(src_0_id, f32, {2, 3, 4}, {1, 2, 6}))},
        {"src_1_permuted", with_tensor(strided(src_1_id, f32, {2, 3, 4}, {1, 8, 2}))},
        {"cond_permuted", with_tensor(strided(cond_id, boolean, {2, 3, 4}, {1, 2, 6}))},
        {"dst_permuted", with_tensor(strided(dst_id, f32, {2, 3, 4}, {1, 2, 6}))},
        {"src_0_padded_rows", with_tensor(strided(src_0_id, f32, {2, 3, 4}, {24, 8, 1}))},
        {"dst_padded_rows", with_tensor(strided(dst_id, f32, {2, 3, 4}, {24, 8, 1}))},
        {"src_0_stride_0", with_tensor(strided(src_0_id, f32, {2, 3, 4}, {0, 0, 1}))},
        {"type_bf16", with_type(dnnl_bf16)},
        {"type_f16", with_type(dnnl_f16)},
    };
    return cases;
}

const std::vector<named_case>& wrong_cases() {
    static const std::vector<named_case> cases = {
        {"cond_does_not_broadcast", shapes({3, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5})},
        {"cond_wrong_extent", shapes({2, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4})},
        {"cond_rank_above_dst", shapes({1, 2, 3}, {2, 3}, {2, 3}, {2, 3})},
        {"cond_larger_than_sources", shapes({2, 3}, {1, 3}, {1, 3}, {2, 3})},
        {"cond_larger_dst_unknown", with_unknown_dst(shapes({2, 3}, {1, 3}, {1, 3}, {}))},
        {"sources_do_not_fit", shapes({2, 3}, {2, 3}, {2, 4}, {2, 3})},
        {"none_with_broadcast", shapes({3}, {2, 3}, {2, 3}, {2, 3}, "none")},
        {"dst_wrong_rank", shapes({2, 3}, {2, 3}, {2, 3}, {1, 2, 3})},
        {"dst_wrong_extent", shapes({2, 3}, {2, 3}, {2, 3}, {2, 4})},
        {"zero_extent_wrong_cond", shapes({5, 3}, {0, 3}, {0, 3}, {0, 3})},
        {"negative_extent", with_tensor(dense(src_0_id, f32, {2, -3, 4}))},
        {"input_extent_unknown", with_tensor(dense(src_1_id, f32, {2, unknown, 4}))},
        {"input_rank_unknown", with_tensor(unknown_rank(src_0_id, f32))},
        {"cond_any", with_tensor(any_layout(cond_id, boolean, {2, 3, 4}))},
        {"src_0_any", with_tensor(any_layout(src_0_id, f32, {2, 3, 4}))},
        {"src_1_any", with_tensor(any_layout(src_1_id, f32, {2, 3, 4}))},
        {"src_1_opaque",
         with_tensor(with_layout(dense(src_1_id, f32, {2, 3, 4}), dnnl_graph_layout_type_opaque))},
        {"dst_undef_layout",
         with_tensor(with_layout(dense(dst_id, f32, {2, 3, 4}), dnnl_graph_layout_type_undef))},
        {"negative_stride", with_tensor(strided(src_0_id, f32, {2, 3, 4}, {12, -4, 1}))},
        {"dst_overlaps", with_tensor(strided(dst_id, f32, {2, 3, 4}, {12, 3, 1}))},
        {"dst_stride_0", with_tensor(strided(dst_id, f32, {2, 3, 4}, {12, 4, 0}))},
        {"dst_all_strides_0", with_tensor(strided(dst_id, f32, {2, 3, 4}, {0, 0, 0}))},
    };
    return cases;
}

void run(const transcript& out, const select_case& problem,
         const std::vector<logical_tensor>& inputs, const std::vector<logical_tensor>& outputs,
         dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion) {
    select_graph graph(out, problem, policy);
    const auto partition = graph.partition();
    if (partition != nullptr) compile_and_execute(out, partition, inputs, outputs);
}

void run_case(const transcript& out, const void* data) {
    const auto& problem = *static_cast<const select_case*>(data);
    run(out, problem, {problem.cond, problem.src_0, problem.src_1}, {problem.dst});
}

// Lists for compile that differ from the ports: in order, length, types or shapes.
struct list_case {
    const char* name;
    std::vector<logical_tensor> inputs, outputs;
};

const std::vector<list_case>& list_cases() {
    const dims all{2, 3, 4};
    const auto cond = dense(cond_id, boolean, all), src_0 = dense(src_0_id, f32, all),
               src_1 = dense(src_1_id, f32, all), dst = dense(dst_id, f32, all);
    const auto bf16 = [&all](std::size_t id) { return dense(id, dnnl_bf16, all); };
    static const std::vector<list_case> cases = {
        {"compile/list_reordered", {src_1, cond, src_0}, {dst}},
        {"compile/list_with_extra", {dense(99, f32, {7}), cond, src_0, src_1}, {dst}},
        {"compile/list_with_repetition", {cond, src_0, cond, src_1, src_0}, {dst}},
        {"compile/list_without_src_1", {cond, src_0}, {dst}},
        {"compile/list_without_dst", {cond, src_0, src_1}, {dense(98, f32, all)}},
        {"compile/list_with_other_type", {cond, bf16(src_0_id), bf16(src_1_id)}, {bf16(dst_id)}},
        {"left_to_onednn/mixed_types", {cond, src_0, bf16(src_1_id)}, {dst}},
        {"left_to_onednn/s8_cond", {dense(cond_id, dnnl_s8, all), src_0, src_1}, {dst}},
        {"compile/list_with_undef_type",
         {cond, dense(src_0_id, dnnl_data_type_undef, all), src_1},
         {dst}},
        {"compile/list_with_other_shape",
         {dense(cond_id, boolean, {5}), dense(src_0_id, f32, {6, 5}), dense(src_1_id, f32, {6, 5})},
         {dense(dst_id, f32, {6, 5})}},
    };
    return cases;
}

void run_list_case(const transcript& out, const void* data) {
    const auto& problem = *static_cast<const list_case*>(data);
    run(out, shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4}), problem.inputs, problem.outputs);
}

void same_source_twice(const transcript& out, const void*) {
    select_case problem = shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4});
    problem.src_1 = problem.src_0;
    run(out, problem, {problem.cond, problem.src_0}, {problem.dst});
}

void constant_src_0(const transcript& out, const void*) {
    select_case problem = shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4});
    problem.src_0.property = dnnl_graph_tensor_property_constant;
    run_case(out, &problem);
}

void debug_policy(const transcript& out, const void*) {
    const select_case problem = shapes({4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4});
    run(out, problem, {problem.cond, problem.src_0, problem.src_1}, {problem.dst},
        dnnl_graph_partition_policy_debug);
}

void compiled_twice(const transcript& out, const void*) {
    const select_case problem = shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4});
    select_graph graph(out, problem);
    const auto partition = graph.partition();
    if (partition == nullptr) return;
    const auto compiled = make_compiled(partition);
    for (const std::int64_t rows : {2, 6}) {
        const logical_tensor result = dense(dst_id, f32, {rows, 4});
        out.status("compile",
                   compile_into(compiled.get(), partition,
                                {dense(cond_id, boolean, {4}), dense(src_0_id, f32, {rows, 4}),
                                 dense(src_1_id, f32, {rows, 4})},
                                {result}));
        out.note("query", text_of(queried(compiled.get(), {result})[0]));
    }
}

} // namespace

void add_compile_scenarios(std::vector<scenario>& all) {
    for (const auto* cases : {&legal_cases(), &wrong_cases()})
        for (const auto& named : *cases)
            all.push_back({std::string("compile/") + named.name, run_case, &named.problem});
    for (const auto& problem : list_cases()) all.push_back({problem.name, run_list_case, &problem});
    all.push_back({"compile/same_source_twice", same_source_twice});
    all.push_back({"compile/constant_src_0", constant_src_0});
    all.push_back({"compile/debug_policy", debug_policy});
    all.push_back({"compile/compiled_twice", compiled_twice});
}

} // namespace maskwise::contract
