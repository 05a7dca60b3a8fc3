#include "graph/infer_shapes.hpp"

#include "base/error.hpp"
#include "graph/compile_checks.hpp"
#include "schema/select_schema.hpp"
#include "tensor/broadcast.hpp"

namespace maskwise::graph {
namespace {

dims infer_shape(const op& op, const shape_map& shapes) {
    const auto shape = [&](std::size_t i) -> const dims& { return shapes.at(op.inputs[i].id); };
    if (op.kind == op_kind::select)
        return infer_dst(onednn_select(), broadcast_of(op), shape(0), shape(1), shape(2));
    if (op.inputs.size() == 1) return shape(0);
    const bool fits = broadcast_of(op) == auto_broadcast::numpy || shape(0) == shape(1);
    const auto joined = broadcast_numpy(shape(0), shape(1));
    if (!fits || !joined)
        throw shape_error(op.name + ": " + to_string(shape(0)) + " and " + to_string(shape(1)) +
                          " do not broadcast");
    return *joined;
}

} // namespace

shape_map infer_shapes(std::span<const op> ops, shape_map shapes) {
    for (const op& op : ops) {
        const dims shape = infer_shape(op, shapes);
        for (const auto& output : op.outputs) shapes[output.id] = shape;
    }
    return shapes;
}

dims infer_result(std::span<const op> ops, shape_map shapes) {
    return infer_shapes(ops, std::move(shapes)).at(ops.back().outputs[0].id);
}

} // namespace maskwise::graph
