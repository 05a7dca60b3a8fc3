#include "graph/redescribe.hpp"

#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "graph/op_set.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <map>

namespace maskwise::graph {
namespace {

// The values as they are now. The types follow two rules: a tensor that the client describes has
// the type given for it; all others have the type that is first given for their recorded type. The
// client need not give each recorded type the same type everywhere: oneDNN is to judge the mixture,
// as it is for operators that Maskwise leaves alone.
struct description {
    std::map<std::size_t, data_type> given_types; // by tensor
    std::map<data_type, data_type> types;         // of the graph, by the recorded one
    shape_map shapes;
    bool is_new = false;

    void note_type(const logical_tensor& recorded, const logical_tensor& given);
    void keep_types_apart();
    void infer(std::span<const op> ops);
    void apply(logical_tensor& tensor) const;
};

void description::note_type(const logical_tensor& recorded, const logical_tensor& given) {
    given_types[given.id] = given.type;
    if (computes_in_f32(recorded.type) && computes_in_f32(given.type))
        types.try_emplace(recorded.type, given.type);
    is_new = is_new || recorded.type != given.type;
}

// If the client remaps A to B and says nothing of B, B becomes A, so casts stay casts: oneDNN has
// none from a type to itself, and each of its casts is from f32 or to it.
void description::keep_types_apart() {
    const auto given = types;
    for (const auto& [from, to] : given)
        if (from != to) types.try_emplace(to, from);
    const auto f32 = types.find(data_type::f32);
    if (f32 == types.end() || f32->second == data_type::f32) return;
    for (const data_type narrow : {data_type::bf16, data_type::f16})
        types.try_emplace(narrow, data_type::f32);
}

// Inferred shapes may differ from those of add_op even where nothing was known of the inputs there.
void description::infer(std::span<const op> ops) {
    shapes = infer_shapes(ops, std::move(shapes));
    const auto differs = [this](const logical_tensor& recorded) {
        return recorded.shape_known() && recorded.extents != shapes.at(recorded.id);
    };
    for (const op& each : ops)
        is_new = is_new || differs(each.outputs[0]) || std::ranges::any_of(each.inputs, differs);
}

// A cond stays boolean: of other types oneDNN takes it at compile only.
void description::apply(logical_tensor& tensor) const {
    const auto own = given_types.find(tensor.id);
    if (own != given_types.end() && tensor.type != data_type::boolean)
        tensor.type = own->second;
    else if (const auto type = types.find(tensor.type); type != types.end())
        tensor.type = type->second;
    tensor.rank_known = true;
    tensor.extents = shapes.at(tensor.id);
    tensor.layout = layout_kind::any;
    tensor.strides_elems = {};
}

} // namespace

std::optional<std::vector<op>> redescribe(std::span<const op> ops,
                                          std::span<const logical_tensor> given_inputs,
                                          std::span<const logical_tensor> given_outputs) {
    description now;
    for (const logical_tensor& input : outer_inputs(ops)) {
        const logical_tensor& given = given_inputs[position_of(given_inputs, input, "an input")];
        now.note_type(input, given);
        now.shapes[given.id] = given.extents;
    }
    const logical_tensor& result = ops.back().outputs[0];
    now.note_type(result, given_outputs[position_of(given_outputs, result, "dst")]);
    now.keep_types_apart();
    now.infer(ops);
    if (!now.is_new) return std::nullopt;
    std::vector<op> described(ops.begin(), ops.end());
    for (op& each : described) {
        for (logical_tensor& input : each.inputs) now.apply(input);
        now.apply(each.outputs[0]);
    }
    return described;
}

} // namespace maskwise::graph
