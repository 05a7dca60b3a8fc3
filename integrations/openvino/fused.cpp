#include "fused.hpp"

#include "block_attributes.hpp"
#include "precision_probe.hpp"

#include "base/verbose.hpp"
#include "tensor/data_type.hpp"

#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/transpose.hpp>

#include <optional>
#include <utility>
#include <variant>

namespace maskwise::openvino {
namespace {

constexpr auto numpy = ov::op::AutoBroadcastType::NUMPY;

// Without the model's tensors, and numbers among the operands: what is saved.
fusion::block plain(fusion::block of, std::size_t operands) {
    of.rows.operands.assign(operands, {});
    if (of.attention) of.attention->numbers.clear();
    return of;
}

// Memory of attention, which the layers of a model need one after another.
fusion::scratch_pool& scratch() {
    static auto* const pool = new fusion::scratch_pool; // for as long as there are threads
    return *pool;
}

// As the products have it: {outer..., rows, depth}, {outer..., keys, depth} or {outer..., keys,
// columns}. Nothing where its rank is open.
std::optional<ov::PartialShape> ordered(const ov::PartialShape& shape,
                                        const std::vector<int>& order) {
    if (shape.rank().is_dynamic()) return std::nullopt;
    OPENVINO_ASSERT(shape.size() == order.size(), "Maskwise: ", shape, " has other than ",
                    order.size(), " dimensions");
    ov::PartialShape moved;
    for (const int d : order) moved.push_back(*(shape.begin() + d));
    return moved;
}

void broadcast_into(ov::PartialShape& shape, const ov::PartialShape& other) {
    const ov::PartialShape before = shape;
    OPENVINO_ASSERT(ov::PartialShape::broadcast_merge_into(shape, other, numpy),
                    "Maskwise: ", before, " and ", other, " do not broadcast");
}

// In place of the last two dimensions.
ov::PartialShape with_matrix(const ov::PartialShape& of, const ov::Dimension& rows,
                             const ov::Dimension& columns) {
    ov::PartialShape made = of;
    made.rbegin()[0] = columns;
    made.rbegin()[1] = rows;
    return made;
}

} // namespace

fused::fused(const ov::OutputVector& inputs, const fusion::block& of, bool has_probe)
    : operation(inputs), has_probe_(has_probe) {
    block_ = plain(of, count_inputs() - (of.attention ? 3 : 1));
    constructor_validate_and_infer_types();
}

std::vector<bool> fused::are_conds() const {
    std::vector<bool> are(count_inputs(), false);
    for (const row_step& step : block_.rows.steps)
        if (const auto* select = std::get_if<row_select>(&step))
            are[first_operand() + select->cond] = true;
    return are;
}

void fused::validate_and_infer_types() {
    const std::vector<bool> conds = are_conds();
    for (std::size_t i = 0; i < conds.size(); ++i)
        if (conds[i]) take_cond(i);
    const ov::element::Type type = merged_type(conds);
    set_output_type(0, type, block_.attention ? shape_of_attention() : shape_of_rows());
    if (block_.attention && take_transpose()) set_output_type(0, type, shape_of_attention());
    if (has_probe_ && is_in_16_bits(*get_input_node_ptr(count_inputs()))) convert_to_bf16();
}

// Between conversions that the plugin takes out where neighbours compute in bf16.
void fused::convert_to_bf16() {
    ov::OutputVector inputs = input_values();
    inputs.pop_back();
    has_probe_ = false;
    set_arguments(inputs);
    if (!may_be_bf16()) return;
    for (std::size_t i = 0; i < first_operand(); ++i) {
        const auto narrow = std::make_shared<ov::op::v0::Convert>(inputs[i], ov::element::bf16);
        input(i).replace_source_output(narrow);
    }
    const auto readers = output(0).get_target_inputs();
    set_output_type(0, ov::element::bf16, get_output_partial_shape(0));
    const auto wide = std::make_shared<ov::op::v0::Convert>(output(0), ov::element::f32);
    wide->set_friendly_name(get_friendly_name());
    set_friendly_name(get_friendly_name() + "/bf16");
    for (auto reader : readers) reader.replace_source_output(wide);
}

// Not where the model has other types, for odd depths, of which the kernels convert pairs one by
// one, and for inputs of the model in open shapes, of which the plugin's conversion truncates.
bool fused::may_be_bf16() const {
    if (get_input_element_type(0) != ov::element::f32) return false;
    const ov::PartialShape& query = get_input_partial_shape(0);
    const auto depth = static_cast<std::ptrdiff_t>(block_.attention->query.order.back());
    if (query.rank().is_dynamic() || (query.begin() + depth)->is_dynamic() ||
        (query.begin() + depth)->get_length() % 2 != 0)
        return false;
    bool truncates = false;
    for (std::size_t i = 0; i < first_operand(); ++i)
        truncates |= get_input_partial_shape(i).is_dynamic() &&
                     ov::is_type<ov::op::v0::Parameter>(get_input_node_ptr(i));
    return !truncates;
}

// A Transpose that alone reads the result: its order becomes the result's.
bool fused::take_transpose() {
    // One that is being made has no readers, and no shared pointer from which output() would make
    // another.
    const auto readers = get_output_target_inputs(0);
    if (readers.size() != 1 || readers.begin()->get_index() != 0) return false;
    const auto reader = readers.begin()->get_node()->shared_from_this();
    if (!ov::is_type<ov::op::v1::Transpose>(reader)) return false;
    const auto* const given = ov::as_type<ov::op::v0::Constant>(reader->get_input_node_ptr(1));
    auto& order = block_.attention->order;
    if (given == nullptr) return false;
    const auto next = given->cast_vector<std::int64_t>();
    if (next.size() != order.size() || !fusion::is_order(next)) return false;
    order = fusion::joined(order, next);
    set_friendly_name(reader->get_friendly_name());
    output(0).get_tensor().set_names(reader->output(0).get_names());
    reader->output(0).replace(output(0));
    return true;
}

// Of the scores, or of query, key and value.
ov::element::Type fused::merged_type(const std::vector<bool>& conds) const {
    ov::element::Type type = get_input_element_type(0);
    for (std::size_t i = 0; i < count_inputs(); ++i) {
        const ov::element::Type given = get_input_element_type(i);
        NODE_VALIDATION_CHECK(this,
                              conds[i] || given.is_dynamic() || computes_in_f32(type_of(given)),
                              "Maskwise: input ", i, " is ", given, ", expected f32, bf16 or f16");
        if (i < first_operand())
            NODE_VALIDATION_CHECK(this, ov::element::Type::merge(type, type, given),
                                  "Maskwise: input 0 is ", type, ", input ", i, " is ", given);
    }
    return type;
}

ov::PartialShape fused::shape_of_rows() const {
    ov::PartialShape shape = get_input_partial_shape(0);
    for (std::size_t i = 1; i < count_inputs(); ++i) {
        const ov::PartialShape& other = get_input_partial_shape(i);
        NODE_VALIDATION_CHECK(this, ov::PartialShape::broadcast_merge_into(shape, other, numpy),
                              "Maskwise: input ", i, " does not broadcast to scores: ", other,
                              ", scores are ", shape);
    }
    return shape;
}

ov::PartialShape fused::shape_of_attention() const {
    const fusion::attention_chain& of = *block_.attention;
    const auto query = ordered(get_input_partial_shape(0), of.query.order);
    const auto key = ordered(get_input_partial_shape(1), of.key.order);
    const auto value = ordered(get_input_partial_shape(2), of.value.order);
    if (!query || !key || !value) return ov::PartialShape::dynamic();
    // 1 x 1 in place of the matrix leaves that of the other.
    ov::PartialShape scores = with_matrix(*query, query->rbegin()[1], key->rbegin()[1]);
    broadcast_into(scores, with_matrix(*key, 1, 1));
    for (std::size_t i = first_operand(); i < count_inputs(); ++i)
        broadcast_into(scores, get_input_partial_shape(i));
    if (scores.rank().is_dynamic()) return ov::PartialShape::dynamic();
    ov::PartialShape result = with_matrix(scores, scores.rbegin()[1], value->rbegin()[0]);
    broadcast_into(result, with_matrix(*value, 1, 1));
    return ordered(result, of.order).value_or(ov::PartialShape::dynamic());
}

std::shared_ptr<ov::Node> fused::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<fused>(inputs, block_, has_probe_);
}

bool fused::visit_attributes(ov::AttributeVisitor& visitor) {
    visitor.on_attribute("probe", has_probe_);
    NODE_VALIDATION_CHECK(this, get_input_size() > 1, "Maskwise: ", get_input_size(), " inputs");
    visit(visitor, block_, count_inputs());
    return true;
}

void fused::run(const ov::TensorVector& inputs, ov::Tensor& output) const {
    const std::vector<bool> conds = are_conds();
    std::vector<tensor_desc> descs;
    std::vector<const void*> addresses;
    fusion::operand_shapes shapes;
    for (std::size_t i = 0; i < conds.size(); ++i) {
        descs.push_back(conds[i] ? describe_cond(inputs[i]) : describe(inputs[i]));
        addresses.push_back(inputs[i].data());
        fusion::append(shapes, descs.back());
    }
    tensor_desc dst{type_of(output.get_element_type()), {}};
    if (!output.is_continuous()) dst = describe(output);
    fusion::append(shapes, dst);
    const auto compiled =
        compiled_->find(shapes, [&] { return fusion::compile(block_, descs, {dst}); });
    const dims& extents = compiled->dst();
    if (const ov::Shape shape(extents.begin(), extents.end()); output.get_shape() != shape)
        output.set_shape(shape);
    run_measured(*compiled, [&] {
        compiled->run({addresses, output.data()}, nullptr, &scratch());
    });
}

} // namespace maskwise::openvino
