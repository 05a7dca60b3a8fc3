#include "onednn/described_anew.hpp"

#include "base/error.hpp"
#include "graph/infer_shapes.hpp"
#include "onednn/translate.hpp"
#include "onednn/translate_op.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace maskwise::onednn {
namespace {

using tensor_list = std::vector<abi::logical_tensor>;

// The operators' values as they are now. Between them each type of the graph follows what is first
// given for it.
struct description {
    std::map<std::size_t, int> given_types; // by tensor
    std::map<int, int> types;
    graph::shape_map shapes;
    bool is_new = false;

    void note_type(const abi::logical_tensor& recorded, const abi::logical_tensor& given);
    void infer_shapes(const merged_record& merged);
    void keep_types_apart();
    void apply(abi::logical_tensor& tensor) const;
};

void description::note_type(const abi::logical_tensor& recorded, const abi::logical_tensor& given) {
    const int from = recorded.data_type, to = given.data_type;
    given_types[given.id] = to;
    if (computes_in_f32(type_from_abi(from)) && computes_in_f32(type_from_abi(to)))
        types.try_emplace(from, to);
    is_new = is_new || from != to;
}

// What the inputs' shapes make of the others may differ from add_op's, even where nothing was known
// of the inputs there.
void description::infer_shapes(const merged_record& merged) {
    shapes = graph::infer_shapes(merged.ops, std::move(shapes));
    const auto differs = [this](const abi::logical_tensor& recorded) {
        return has_known_shape(recorded) && from_abi(recorded).extents != shapes.at(recorded.id);
    };
    for (const auto& op : merged.rows->ops)
        is_new = is_new || differs(op->outputs[0]) ||
                 std::any_of(op->inputs.begin(), op->inputs.end(), differs);
}

// A type that nothing is given for gives way to the one that takes its place: what was cast between
// the two still is. oneDNN has no cast from a type to itself, and each is from f32 or to it.
void description::keep_types_apart() {
    const auto given = types;
    for (const auto& [from, to] : given)
        if (from != to) types.try_emplace(to, from);
    const auto f32 = types.find(abi::type_f32);
    if (f32 == types.end() || f32->second == abi::type_f32) return;
    for (const int narrow : {abi::type_bf16, abi::type_f16})
        types.try_emplace(narrow, abi::type_f32);
}

void description::apply(abi::logical_tensor& tensor) const {
    if (const auto own = given_types.find(tensor.id); own != given_types.end())
        tensor.data_type = own->second;
    else if (const auto type = types.find(tensor.data_type); type != types.end())
        tensor.data_type = type->second;
    const auto& shape = shapes.at(tensor.id);
    tensor.ndims = shape.rank();
    std::copy(shape.begin(), shape.end(), tensor.dims);
    tensor.layout_type = abi::layout_any;
}

const abi::logical_tensor& given_for(const abi::logical_tensor& port, const tensor_list& given) {
    if (const auto* found = find_by_id(given, port.id)) return *found;
    throw invalid_argument("tensor " + std::to_string(port.id) +
                           " is not in the list given to compile");
}

description describe(const merged_record& merged, const compile_call& call) {
    const auto inputs = copy_tensors(call.in_num, call.inputs);
    const auto outputs = copy_tensors(call.out_num, call.outputs);
    description now;
    for (const auto& port : merged.inputs) {
        const auto& given = given_for(port, inputs);
        now.note_type(port, given);
        now.shapes[given.id] = from_abi(given).extents;
    }
    now.note_type(merged.outputs[0], given_for(merged.outputs[0], outputs));
    now.keep_types_apart();
    now.infer_shapes(merged);
    return now;
}

// The statistics of a SoftMax, its second output, are the client's to describe.
std::shared_ptr<const op_record> described(const op_record& op, const description& now) {
    auto copy = std::make_shared<op_record>(op);
    for (auto& input : copy->inputs) now.apply(input);
    now.apply(copy->outputs[0]);
    return copy;
}

} // namespace

std::shared_ptr<const region_record> described_anew(const merged_record& merged,
                                                    const compile_call& call) {
    const description now = describe(merged, call);
    if (!now.is_new) return nullptr;
    auto anew = std::make_shared<region_record>(*merged.rows);
    std::vector<graph::op> ops;
    for (auto& op : anew->ops) {
        op = described(*op, now);
        ops.push_back(translate(*op));
    }
    auto chains = graph::find_row_chains(ops, [](std::size_t) { return true; });
    const bool is_whole = chains.size() == 1 && chains[0].ops.size() == ops.size();
    anew->chain = is_whole ? std::move(chains[0].chain) : graph::row_chain{};
    return anew;
}

} // namespace maskwise::onednn
