#include "graph/redescribe.hpp"

#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "graph/op_set.hpp"

#include <algorithm>

namespace maskwise::graph {
namespace {

shape_map shapes_at_compile(std::span<const op> ops, std::span<const logical_tensor> inputs) {
    shape_map shapes;
    for (const logical_tensor& port : outer_inputs(ops))
        shapes[port.id] = inputs[position_of(inputs, port, "an input")].extents;
    return infer_shapes(ops, std::move(shapes));
}

// A shape that was unknown at add_op counts as new, because no decision has used it.
bool has_new_shape(std::span<const op> ops, const shape_map& shapes) {
    const auto is_new = [&](const logical_tensor& recorded) {
        return !recorded.rank_known || recorded.extents != shapes.at(recorded.id);
    };
    return std::ranges::any_of(ops, [&](const op& each) {
        return is_new(each.outputs[0]) || std::ranges::any_of(each.inputs, is_new);
    });
}

void reshape(logical_tensor& tensor, const dims& extents) {
    tensor.rank_known = true;
    tensor.extents = extents;
    tensor.layout = layout_kind::any;
    tensor.strides_elems = {};
}

} // namespace

std::optional<std::vector<op>> redescribe(std::span<const op> ops,
                                          std::span<const logical_tensor> inputs) {
    const shape_map shapes = shapes_at_compile(ops, inputs);
    if (!has_new_shape(ops, shapes)) return std::nullopt;
    std::vector<op> described(ops.begin(), ops.end());
    for (op& each : described) {
        for (logical_tensor& input : each.inputs) reshape(input, shapes.at(input.id));
        reshape(each.outputs[0], shapes.at(each.outputs[0].id));
    }
    return described;
}

} // namespace maskwise::graph
