// Bad input of every kind: numbers that overflow, invalid strides, wrong pointers and counts.
// Maskwise returns a status or a right result. compile_scenarios.cpp has more cases.

#include "select_graph.hpp"

#include <algorithm>

namespace maskwise::contract {
namespace {

constexpr auto f32 = dnnl_f32;
constexpr auto boolean = dnnl_boolean;
constexpr std::int64_t huge = std::int64_t{1} << 62;

select_case all_with(const dims& extents, const dims& strides) {
    return {strided(cond_id, boolean, extents, strides), strided(src_0_id, f32, extents, strides),
            strided(src_1_id, f32, extents, strides), strided(dst_id, f32, extents, strides), ""};
}

logical_tensor with_rank(logical_tensor tensor, int rank) {
    tensor.ndims = rank;
    return tensor;
}

const std::vector<named_case>& cases() {
    static const std::vector<named_case> list = {
        {"elements_overflow", all_with({huge, 8}, {8, 1})},
        {"bytes_overflow", all_with({huge}, {1})},
        {"strides_overflow", all_with({2, 2}, {huge, 1})},
        {"negative_everywhere", all_with({-2, 3}, {3, 1})},
        {"src_0_stride_overflows", with_tensor(strided(src_0_id, f32, {2, 3, 4}, {huge, 4, 1}))},
        {"src_1_span_overflows",
         with_tensor(strided(src_1_id, f32, {2, 3, 4}, {INT64_MAX, INT64_MAX, 1}))},
        {"dst_span_overflows",
         with_tensor(strided(dst_id, f32, {2, 3, 4}, {huge / 2, huge / 4, 1}))},
        {"cond_negative_stride", with_tensor(strided(cond_id, boolean, {2, 3, 4}, {12, 4, -1}))},
        {"src_1_negative_stride", with_tensor(strided(src_1_id, f32, {2, 3, 4}, {-12, 4, 1}))},
        {"dst_negative_stride", with_tensor(strided(dst_id, f32, {2, 3, 4}, {12, -4, 1}))},
        {"cond_negative_extent", with_tensor(dense(cond_id, boolean, {2, 3, -4}))},
        {"src_1_negative_extent", with_tensor(dense(src_1_id, f32, {-2, 3, 4}))},
        {"dst_negative_extent", with_tensor(dense(dst_id, f32, {2, -3, 4}))},
        {"dst_rows_overlap", with_tensor(strided(dst_id, f32, {2, 3, 4}, {4, 4, 1}))},
        {"dst_interleaved_overlap", with_tensor(strided(dst_id, f32, {2, 3, 4}, {3, 2, 1}))},
        {"cond_rank_unknown", with_tensor(unknown_rank(cond_id, boolean))},
        {"src_1_rank_unknown", with_tensor(unknown_rank(src_1_id, f32))},
        {"src_0_rank_13", with_tensor(with_rank(dense(src_0_id, f32, {2, 3, 4}), 13))},
        {"src_1_rank_minus_7", with_tensor(with_rank(dense(src_1_id, f32, {2, 3, 4}), -7))},
        {"dst_rank_13", with_tensor(with_rank(dense(dst_id, f32, {2, 3, 4}), 13))},
    };
    return list;
}

void run_wrong_case(const transcript& out, const void* data) {
    const auto& problem = *static_cast<const select_case*>(data);
    select_graph graph(out, with_tensor(dense(dst_id, f32, {2, 3, 4})));
    const auto partition = graph.partition();
    const auto compiled =
        compile(partition, {problem.cond, problem.src_0, problem.src_1}, {problem.dst});
    out.note("compiled", compiled != nullptr);
}

// A Select and its tensors. `compiled` is null if this oneDNN does not support the Select.
struct ready {
    logical_tensor cond = dense(cond_id, boolean, {40}), src_0 = dense(src_0_id, f32, {9, 40}),
                   src_1 = dense(src_1_id, f32, {1}), dst = dense(dst_id, f32, {9, 40});
    owned_graph graph = build({{1, dnnl_graph_op_select, {cond, src_0, src_1}, {dst}}});
    owned_partition partition = std::move(partitions_of(graph.get())[0]);
    owned_compiled compiled = is_supported(partition.get())
                                  ? compile(partition.get(), {cond, src_0, src_1}, {dst})
                                  : nullptr;
};

dnnl_status_t execute_at(const ready& r, const std::vector<void*>& data) {
    const logical_tensor* const operands[] = {&r.cond, &r.src_0, &r.src_1, &r.dst};
    std::vector<owned_tensor> owners;
    std::vector<const_dnnl_graph_tensor_t> handles;
    for (std::size_t i = 0; i < data.size(); ++i) {
        owners.push_back(tensor_at(*operands[i], data[i]));
        handles.push_back(owners.back().get());
    }
    return dnnl_graph_compiled_partition_execute(r.compiled.get(), cpu_stream(), 3, handles.data(),
                                                 1, &handles[3]);
}

// Every buffer starts `shift` bytes after an aligned address.
void misaligned(const transcript& out, const void*) {
    const ready r;
    if (!r.compiled) return;
    for (const std::size_t shift : {1U, 2U, 3U, 5U, 7U}) {
        memory bytes;
        std::vector<void*> data;
        for (const auto& tensor : {r.cond, r.src_0, r.src_1, r.dst}) {
            auto& buffer = bytes[tensor.id] = filled_buffer(tensor);
            buffer.insert(buffer.begin(), shift, std::uint8_t{0});
            data.push_back(buffer.data() + shift);
        }
        out.status("execute", execute_at(r, data));
        bytes[dst_id].erase(bytes[dst_id].begin(),
                            bytes[dst_id].begin() + static_cast<std::ptrdiff_t>(shift));
        out.note("hash", std::to_string(hash_of(bytes[dst_id])));
    }
}

// A tensor may have no memory (DNNL_MEMORY_NONE), but execute must refuse such a tensor.
void null_data(const transcript& out, const void* missing) {
    const ready r;
    if (!r.compiled) return;
    memory bytes;
    std::vector<void*> data;
    for (const auto& tensor : {r.cond, r.src_0, r.src_1, r.dst})
        data.push_back((bytes[tensor.id] = filled_buffer(tensor)).data());
    data[*static_cast<const std::size_t*>(missing)] = nullptr;
    out.status("execute", execute_at(r, data));
}

// Passes fewer tensors than compile received, and null lists.
void wrong_counts(const transcript& out, const void*) {
    const ready r;
    if (!r.compiled) return;
    memory bytes;
    bound_tensors in({r.cond, r.src_0, r.src_1}, bytes), result({r.dst}, bytes);
    const auto run = [&](std::size_t inputs, const_dnnl_graph_tensor_t* from, std::size_t outputs,
                         const_dnnl_graph_tensor_t* to) {
        return dnnl_graph_compiled_partition_execute(r.compiled.get(), cpu_stream(), inputs, from,
                                                     outputs, to);
    };
    out.status("no inputs", run(0, nullptr, 1, result.data()));
    out.status("no outputs", run(3, in.data(), 0, nullptr));
    out.status("two inputs", run(2, in.data(), 1, result.data()));
}

void null_element(const transcript& out, const void*) {
    const ready r;
    if (!r.compiled) return;
    const_dnnl_graph_tensor_t in[] = {nullptr, nullptr, nullptr};
    const_dnnl_graph_tensor_t result[] = {nullptr};
    out.status("execute", dnnl_graph_compiled_partition_execute(r.compiled.get(), cpu_stream(), 3,
                                                                in, 1, result));
}

void compile_lists_of_nulls(const transcript& out, const void*) {
    const ready r;
    if (!is_supported(r.partition.get())) return;
    const auto compiled = make_compiled(r.partition.get());
    const logical_tensor* in[] = {&r.cond, nullptr, &r.src_1};
    const logical_tensor* result[] = {&r.dst};
    out.status("null element", dnnl_graph_partition_compile(r.partition.get(), compiled.get(), 3,
                                                            in, 1, result, cpu_engine()));
}

void compile_empty_lists(const transcript& out, const void*) {
    const ready r;
    if (!is_supported(r.partition.get())) return;
    const auto compiled = make_compiled(r.partition.get());
    out.status("empty lists", dnnl_graph_partition_compile(r.partition.get(), compiled.get(), 0,
                                                           nullptr, 0, nullptr, cpu_engine()));
}

constexpr std::size_t operand_ids[] = {cond_id, src_0_id, src_1_id, dst_id};
constexpr const char* operand_names[] = {"cond", "src_0", "src_1", "dst"};

} // namespace

void add_wrong_scenarios(std::vector<scenario>& all) {
    for (const auto& problem : cases())
        all.push_back({std::string("wrong/") + problem.name, run_wrong_case, &problem.problem});
    for (const auto& id : operand_ids)
        all.push_back({std::string("wrong/null_data_of_") + operand_names[id], null_data, &id});
    all.push_back({"wrong/misaligned", misaligned});
    all.push_back({"wrong/wrong_counts", wrong_counts});
    all.push_back({"wrong/null_element", null_element});
    all.push_back({"wrong/compile_lists_of_nulls", compile_lists_of_nulls});
    all.push_back({"wrong/compile_empty_lists", compile_empty_lists});
}

} // namespace maskwise::contract
