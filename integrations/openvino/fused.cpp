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

// Returns the block without the model's tensor ids. The scalars that scale query or key become
// operands.
fusion::block without_tensors(fusion::block block, std::size_t operands) {
    block.rows.operands.assign(operands, {});
    if (block.attention) block.attention->numbers.clear();
    return block;
}

// Shared by all operations, because a model's layers run one after another.
fusion::block_scratch& scratch() {
    // Never freed, because threads may outlive static objects.
    static auto* const pool = new fusion::block_scratch;
    return *pool;
}

// Permutes a shape to {outer..., rows, depth}, {outer..., keys, depth} or {outer..., keys,
// columns}. Returns nullopt if the rank is unknown.
std::optional<ov::PartialShape> permute(const ov::PartialShape& shape,
                                        const std::vector<int>& order) {
    if (shape.rank().is_dynamic()) return std::nullopt;
    const auto full_order = fusion::order_for(static_cast<int>(shape.size()), order);
    OPENVINO_ASSERT(full_order, "Maskwise: the rank of ", shape, " is not ", order.size());
    ov::PartialShape permuted;
    for (const int d : *full_order) permuted.push_back(*(shape.begin() + d));
    return permuted;
}

void broadcast_into(ov::PartialShape& shape, const ov::PartialShape& other) {
    const ov::PartialShape before = shape;
    OPENVINO_ASSERT(ov::PartialShape::broadcast_merge_into(shape, other, numpy),
                    "Maskwise: ", before, " and ", other, " do not broadcast");
}

ov::PartialShape with_matrix(ov::PartialShape shape, const ov::Dimension& rows,
                             const ov::Dimension& columns) {
    shape.rbegin()[0] = columns;
    shape.rbegin()[1] = rows;
    return shape;
}

} // namespace

fused::fused(const ov::OutputVector& inputs, const fusion::block& block, bool scales_by_depth)
    : operation(inputs), scales_by_depth_(scales_by_depth) {
    block_ = without_tensors(block, inputs.size() + scales_by_depth - (block.attention ? 3 : 1));
    constructor_validate_and_infer_types();
}

std::vector<bool> fused::cond_flags() const {
    std::vector<bool> flags(get_input_size(), false);
    for (const row_step& step : block_.rows.steps)
        if (const auto* select = std::get_if<row_select>(&step); select != nullptr && select->cond)
            flags[first_operand() + *select->cond] = true;
    return flags;
}

void fused::validate_and_infer_types() {
    const std::vector<bool> conds = cond_flags();
    for (std::size_t i = 0; i < conds.size(); ++i)
        if (conds[i]) accept_cond(i);
    set_output_type(0, merged_type(conds),
                    block_.attention ? shape_of_attention() : shape_of_rows());
}

// Returns the type of the scores, or of query, key and value.
ov::element::Type fused::merged_type(const std::vector<bool>& conds) const {
    ov::element::Type type = get_input_element_type(0);
    for (std::size_t i = 0; i < get_input_size(); ++i) {
        const ov::element::Type input_type = get_input_element_type(i);
        NODE_VALIDATION_CHECK(
            this, conds[i] || input_type.is_dynamic() || computes_in_f32(type_of(input_type)),
            "Maskwise: input ", i, " is ", input_type, ", expected f32, bf16 or f16");
        if (i < first_operand())
            NODE_VALIDATION_CHECK(this, ov::element::Type::merge(type, type, input_type),
                                  "Maskwise: input 0 is ", type, ", input ", i, " is ", input_type);
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
    const fusion::attention_chain& attention = *block_.attention;
    const auto query = permute(get_input_partial_shape(0), attention.query.order);
    const auto key = permute(get_input_partial_shape(1), attention.key.order);
    const auto value = permute(get_input_partial_shape(2), attention.value.order);
    if (!query || !key || !value) return ov::PartialShape::dynamic();
    // As 1 x 1 matrices, key and value broadcast only by their outer dimensions.
    ov::PartialShape scores = with_matrix(*query, query->rbegin()[1], key->rbegin()[1]);
    broadcast_into(scores, with_matrix(*key, 1, 1));
    for (std::size_t i = first_operand(); i < get_input_size(); ++i)
        broadcast_into(scores, get_input_partial_shape(i));
    if (scores.rank().is_dynamic()) return ov::PartialShape::dynamic();
    ov::PartialShape result = with_matrix(scores, scores.rbegin()[1], value->rbegin()[0]);
    broadcast_into(result, with_matrix(*value, 1, 1));
    return permute(result, attention.order).value_or(ov::PartialShape::dynamic());
}

std::shared_ptr<ov::Node> fused::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<fused>(inputs, block_, scales_by_depth_);
}

bool fused::visit_attributes(ov::AttributeVisitor& visitor) {
    visitor.on_attribute("scales_by_depth", scales_by_depth_);
    visit(visitor, block_, get_input_size() + scales_by_depth_);
    return true;
}

// Requires a query shape for which a plan exists.
float fused::scale_of(const tensor_desc& query) const {
    const auto order = fusion::order_for(query.extents.rank(), block_.attention->query.order);
    return default_scale(query.extents[order->back()]);
}

void fused::run(const ov::TensorVector& inputs, ov::Tensor& output) const {
    const std::vector<bool> conds = cond_flags();
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
