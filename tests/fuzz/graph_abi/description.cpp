#include "description.hpp"

#include <algorithm>

namespace maskwise::fuzz {
namespace {

using test::draw;
using test::one_in;

constexpr std::int64_t unknown = DNNL_GRAPH_UNKNOWN_DIM;

template <typename T, std::size_t N>
T pick(generator& random, const T (&list)[N]) {
    return list[draw(random, 0, N - 1)];
}

dnnl_data_type_t draw_type(generator& random, dnnl_data_type_t usual) {
    static constexpr dnnl_data_type_t all[] = {dnnl_f32, dnnl_bf16, dnnl_f16,    dnnl_s32,
                                               dnnl_s8,  dnnl_u8,   dnnl_boolean};
    return one_in(random, 24) ? pick(random, all) : usual;
}

std::vector<std::int64_t> draw_extents(generator& random) {
    static constexpr std::int64_t usual[] = {1, 1, 2, 2, 3, 5, 8, 16, 17, 33, 0};
    std::vector<std::int64_t> extents(static_cast<std::size_t>(draw(random, 0, 4)));
    for (auto& extent : extents) extent = pick(random, usual);
    return extents;
}

// Extents that broadcast to `whole`, with rare exceptions.
std::vector<std::int64_t> draw_part(generator& random, const std::vector<std::int64_t>& whole) {
    auto part = whole;
    const auto dropped = one_in(random, 3) ? draw(random, 0, std::ssize(whole)) : 0;
    part.erase(part.begin(), part.begin() + dropped);
    for (auto& extent : part) {
        if (one_in(random, 4)) extent = 1;
        if (one_in(random, 40)) extent = draw(random, 0, 7);
    }
    return part;
}

} // namespace

void forget_shape(generator& random, logical_tensor& tensor) {
    tensor.layout_type =
        one_in(random, 2) ? dnnl_graph_layout_type_any : dnnl_graph_layout_type_undef;
    if (one_in(random, 2))
        tensor.ndims = -1;
    else
        for (int i = 0; i < tensor.ndims; ++i)
            if (one_in(random, 2)) tensor.dims[i] = unknown;
}

namespace {

op_description draw_select(generator& random, std::size_t id, std::size_t first_tensor) {
    op_description op{id, dnnl_graph_op_select, "", one_in(random, 40), {}, {}};
    static constexpr dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};
    static const std::string words[] = {"", "numpy", "none", "NumPy", "sideways"};
    op.auto_broadcast = words[one_in(random, 4) ? draw(random, 0, 4) : draw(random, 0, 1)];
    const auto type = pick(random, types);
    const auto whole = draw_extents(random);
    op.inputs.push_back(
        test::dense(first_tensor, draw_type(random, dnnl_boolean), draw_part(random, whole)));
    for (const std::size_t i : {1U, 2U})
        op.inputs.push_back(test::dense(first_tensor + i, draw_type(random, type),
                                        one_in(random, 3) ? draw_part(random, whole) : whole));
    op.outputs.push_back(test::dense(first_tensor + 3, draw_type(random, type), whole));
    if (one_in(random, 40)) op.inputs.resize(static_cast<std::size_t>(draw(random, 0, 2)));
    if (one_in(random, 40)) op.inputs.push_back(op.inputs.empty() ? op.outputs[0] : op.inputs[0]);
    if (one_in(random, 60)) op.outputs.clear();
    for (auto* list : {&op.inputs, &op.outputs})
        for (auto& tensor : *list)
            if (one_in(random, 6)) forget_shape(random, tensor);
    return op;
}

// An element-wise operator that reads the Select's dst.
op_description draw_neighbour(std::size_t id, const op_description& before) {
    op_description op{id, dnnl_graph_op_relu, "", false, {}, {}};
    if (before.outputs.empty()) return op;
    op.inputs = {before.outputs[0]};
    op.outputs = {before.outputs[0]};
    op.outputs[0].id += 1;
    return op;
}

void spoil(generator& random, logical_tensor& tensor) {
    const auto position = draw(random, 0, DNNL_MAX_NDIMS - 1);
    static constexpr std::int64_t odd[] = {-1, 0, 1, unknown, INT64_MAX, 1LL << 40, 1LL << 62, 2};
    switch (draw(random, 0, 7)) {
    case 0:
        tensor.ndims = static_cast<int>(draw(random, -2, 13));
        break;
    case 1:
        tensor.dims[position % 4] = pick(random, odd);
        break;
    case 2:
        tensor.layout.strides[position % 4] = pick(random, odd);
        break;
    case 3:
        tensor.layout_type = static_cast<dnnl_graph_layout_type_t>(draw(random, 0, 3));
        break;
    case 4:
        tensor.property = static_cast<dnnl_graph_tensor_property_t>(draw(random, 0, 3));
        break;
    case 5:
        tensor.id = static_cast<std::size_t>(draw(random, 0, 12));
        break;
    case 6:
        tensor.data_type = draw_type(random, dnnl_f16);
        break;
    default: {
        const auto step = draw(random, -2, 6);
        std::int64_t& stride = tensor.layout.strides[position % 4];
        if (__builtin_add_overflow(stride, step, &stride)) stride = step;
    }
    }
}

// Reverses the order of dimensions in memory, sometimes with padding.
void reverse_layout(generator& random, logical_tensor& tensor) {
    std::int64_t stride = 1;
    for (int i = 0; i < tensor.ndims; ++i) {
        tensor.layout.strides[i] = stride;
        stride *= std::max<std::int64_t>(tensor.dims[i], 1);
        if (one_in(random, 3)) stride += draw(random, 0, 3);
    }
}

void fill_in(generator& random, logical_tensor& tensor, const std::vector<std::int64_t>& usual) {
    for (int i = 0; i < tensor.ndims; ++i)
        if (tensor.dims[i] == unknown) tensor.ndims = -1;
    if (tensor.ndims < 0) {
        tensor.ndims = static_cast<int>(usual.size());
        std::copy(usual.begin(), usual.end(), tensor.dims);
    }
    tensor.layout_type = dnnl_graph_layout_type_strided;
    const auto strides = test::row_major({tensor.dims, tensor.dims + tensor.ndims});
    std::copy(strides.begin(), strides.end(), tensor.layout.strides);
    if (one_in(random, 4)) reverse_layout(random, tensor);
}

void append(std::string& text, const char* name, const std::vector<logical_tensor>& tensors) {
    for (const auto& tensor : tensors) {
        text += std::string(name) + ' ' + std::to_string(tensor.id) + ": type " +
                std::to_string(tensor.data_type) + " layout " + std::to_string(tensor.layout_type) +
                " property " + std::to_string(tensor.property) + " rank " +
                std::to_string(tensor.ndims);
        for (int i = 0; i < std::min(tensor.ndims, DNNL_MAX_NDIMS); ++i)
            text += (i == 0 ? " " : " x ") + std::to_string(tensor.dims[i]) + '@' +
                    std::to_string(tensor.layout.strides[i]);
        text += '\n';
    }
}

} // namespace

std::string to_string(const op_description& op) {
    std::string text = "op " + std::to_string(op.id) + " kind " + std::to_string(op.kind) + " '" +
                       op.auto_broadcast + "'\n";
    append(text, "  input", op.inputs);
    append(text, "  output", op.outputs);
    return text;
}

std::string to_string(const compile_description& request) {
    std::string text;
    append(text, "  compile input", request.inputs);
    append(text, "  compile output", request.outputs);
    return text;
}

graph_description draw_graph(generator& random) {
    graph_description graph;
    graph.policy =
        one_in(random, 4) ? dnnl_graph_partition_policy_debug : dnnl_graph_partition_policy_fusion;
    graph.finalized = !one_in(random, 50);
    graph.through_single_op = one_in(random, 8);
    graph.ops.push_back(draw_select(random, 7, 0));
    if (one_in(random, 4))
        graph.ops.push_back(draw_neighbour(one_in(random, 6) ? 7 : 8, graph.ops[0]));
    if (one_in(random, 6)) graph.ops.push_back(draw_select(random, one_in(random, 6) ? 7 : 9, 20));
    return graph;
}

compile_description draw_compile(generator& random, const op_description& select) {
    compile_description request{select.inputs, select.outputs};
    const auto whole = draw_extents(random);
    for (auto& input : request.inputs) fill_in(random, input, whole);
    for (auto& output : request.outputs) {
        if (one_in(random, 3)) forget_shape(random, output);
        if (output.layout_type == dnnl_graph_layout_type_undef && !one_in(random, 30))
            output.layout_type = dnnl_graph_layout_type_any;
        if (output.layout_type == dnnl_graph_layout_type_strided && one_in(random, 4))
            reverse_layout(random, output);
    }
    if (one_in(random, 3)) std::shuffle(request.inputs.begin(), request.inputs.end(), random);
    if (one_in(random, 8)) request.inputs.push_back(test::dense(99, dnnl_f32, {4}));
    if (one_in(random, 30)) request.inputs.pop_back();
    while (one_in(random, 3)) {
        auto& list = one_in(random, 3) ? request.outputs : request.inputs;
        if (!list.empty())
            spoil(random, list[static_cast<std::size_t>(draw(random, 0, std::ssize(list) - 1))]);
    }
    return request;
}

} // namespace maskwise::fuzz
