#include "fused.hpp"

#include "block_attributes.hpp"

#include "attention/attention_checks.hpp"
#include "base/verbose.hpp"
#include "tensor/data_type.hpp"

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
fusion::block_scratch& scratch() {
    static auto* const pool = new fusion::block_scratch; // for as long as there are threads
    return *pool;
}

// {outer..., rows, depth}, {outer..., keys, depth} or {outer..., keys, columns}. Nothing if the
// rank is unknown.
std::optional<ov::PartialShape> ordered(const ov::PartialShape& shape,
                                        const std::vector<int>& order) {
    if (shape.rank().is_dynamic()) return std::nullopt;
    const auto own = fusion::order_for(static_cast<int>(shape.size()), order);
    OPENVINO_ASSERT(own, "Maskwise: ", shape, " has other than ", order.size(), " dimensions");
    ov::PartialShape moved;
    for (const int d : *own) moved.push_back(*(shape.begin() + d));
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

fused::fused(const ov::OutputVector& inputs, const fusion::block& of, bool scales_by_depth)
    : operation(inputs), scales_by_depth_(scales_by_depth) {
    block_ = plain(of, inputs.size() + scales_by_depth - (of.attention ? 3 : 1));
    constructor_validate_and_infer_types();
}

std::vector<bool> fused::are_conds() const {
    std::vector<bool> are(get_input_size(), false);
    for (const row_step& step : block_.rows.steps)
        if (const auto* select = std::get_if<row_select>(&step))
            are[first_operand() + select->cond] = true;
    return are;
}

void fused::validate_and_infer_types() {
    const std::vector<bool> conds = are_conds();
    for (std::size_t i = 0; i < conds.size(); ++i)
        if (conds[i]) take_cond(i);
    set_output_type(0, merged_type(conds),
                    block_.attention ? shape_of_attention() : shape_of_rows());
}

// Of the scores, or of query, key and value.
ov::element::Type fused::merged_type(const std::vector<bool>& conds) const {
    ov::element::Type type = get_input_element_type(0);
    for (std::size_t i = 0; i < get_input_size(); ++i) {
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
    for (std::size_t i = 1; i < get_input_size(); ++i) {
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
    for (std::size_t i = first_operand(); i < get_input_size(); ++i)
        broadcast_into(scores, get_input_partial_shape(i));
    if (scores.rank().is_dynamic()) return ov::PartialShape::dynamic();
    ov::PartialShape result = with_matrix(scores, scores.rbegin()[1], value->rbegin()[0]);
    broadcast_into(result, with_matrix(*value, 1, 1));
    return ordered(result, of.order).value_or(ov::PartialShape::dynamic());
}

std::shared_ptr<ov::Node> fused::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<fused>(inputs, block_, scales_by_depth_);
}

bool fused::visit_attributes(ov::AttributeVisitor& visitor) {
    visitor.on_attribute("scales_by_depth", scales_by_depth_);
    visit(visitor, block_, get_input_size() + scales_by_depth_);
    return true;
}

// Of shapes that a plan has been made for.
float fused::scale_of(const tensor_desc& query) const {
    const auto order = fusion::order_for(query.extents.rank(), block_.attention->query.order);
    return default_scale(query.extents[order->back()]);
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
    float scale = 1;
    if (scales_by_depth_) {
        descs.push_back({data_type::f32, {}});
        addresses.push_back(&scale);
    }
    tensor_desc dst{type_of(output.get_element_type()), {}};
    if (!output.is_continuous()) dst = describe(output);
    fusion::append(shapes, dst);
    const auto compiled =
        compiled_->find(shapes, [&] { return fusion::compile(block_, descs, {dst}); });
    if (scales_by_depth_) scale = scale_of(descs[0]);
    const dims& extents = compiled->dst();
    if (const ov::Shape shape(extents.begin(), extents.end()); output.get_shape() != shape)
        output.set_shape(shape);
    run_measured(*compiled, [&] {
        compiled->run({addresses, output.data()}, nullptr, &scratch());
    });
}

} // namespace maskwise::openvino
