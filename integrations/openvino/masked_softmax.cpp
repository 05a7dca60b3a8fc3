#include "masked_softmax.hpp"

#include "base/verbose.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace maskwise::openvino {
namespace {

// Steps as a saved model has them: names, and for each the numbers of its cond and its side.
struct saved_steps {
    std::vector<std::string> operators;
    std::vector<std::int64_t> operands;
};

struct step_parts {
    row_operator op;
    std::size_t cond = 0, side = 0;
};

step_parts parts_of(const row_step& step) {
    if (const auto* with = std::get_if<row_combine>(&step)) return {with->op, 0, with->side};
    if (const auto* select = std::get_if<row_select>(&step))
        return {select->op, select->cond, select->side};
    return {std::get<row_change>(step).op};
}

saved_steps save(const std::vector<row_step>& steps) {
    saved_steps made;
    for (const row_step& step : steps) {
        const auto [op, cond, side] = parts_of(step);
        made.operators.emplace_back(row_operator_names()[static_cast<std::size_t>(op)]);
        for (const std::size_t each : {cond, side})
            made.operands.push_back(static_cast<std::int64_t>(each));
    }
    return made;
}

row_step step_of(row_operator op, std::size_t cond, std::size_t side) {
    if (op == row_operator::select_kept || op == row_operator::select_masked)
        return row_select{op, cond, side};
    if (has_side(op)) return row_combine{op, side};
    return row_change{op};
}

// Any text and any numbers.
std::vector<row_step> restore(const saved_steps& saved, std::size_t operands) {
    OPENVINO_ASSERT(saved.operands.size() == 2 * saved.operators.size(),
                    "Maskwise: ", saved.operators.size(), " steps have ", saved.operands.size(),
                    " operands");
    std::vector<row_step> steps;
    for (std::size_t i = 0; i < saved.operators.size(); ++i) {
        const auto names = row_operator_names();
        const auto name = std::ranges::find(names, saved.operators[i]);
        OPENVINO_ASSERT(name != names.end(), "Maskwise: no step '", saved.operators[i], "'");
        const auto cond = static_cast<std::size_t>(saved.operands[2 * i]);
        const auto side = static_cast<std::size_t>(saved.operands[2 * i + 1]);
        const auto op = static_cast<row_operator>(name - names.begin());
        OPENVINO_ASSERT(!has_side(op) || std::max(cond, side) < operands, "Maskwise: step '", *name,
                        "' reads operands ", saved.operands[2 * i], " and ",
                        saved.operands[2 * i + 1], " of ", operands);
        steps.push_back(step_of(op, cond, side));
    }
    return steps;
}

} // namespace

masked_softmax::masked_softmax(const ov::OutputVector& inputs, std::vector<row_step> steps)
    : operation(inputs), steps_(std::move(steps)) {
    constructor_validate_and_infer_types();
}

bool masked_softmax::is_cond(std::size_t input) const {
    return std::ranges::any_of(steps_, [&](const row_step& step) {
        const auto* const select = std::get_if<row_select>(&step);
        return select != nullptr && select->cond + 1 == input;
    });
}

void masked_softmax::validate_and_infer_types() {
    NODE_VALIDATION_CHECK(this, get_input_size() > 0, "Maskwise: no scores");
    const ov::PartialShape& shape = get_input_partial_shape(0);
    ov::element::Type type = get_input_element_type(0);
    for (std::size_t i = 1; i < get_input_size(); ++i) {
        if (is_cond(i)) {
            take_cond(i);
        } else {
            NODE_VALIDATION_CHECK(
                this, ov::element::Type::merge(type, type, get_input_element_type(i)),
                "Maskwise: scores are ", type, ", input ", i, " is ", get_input_element_type(i));
        }
        ov::PartialShape merged = shape;
        const ov::PartialShape& other = get_input_partial_shape(i);
        NODE_VALIDATION_CHECK(this,
                              ov::PartialShape::broadcast_merge_into(
                                  merged, other, ov::op::AutoBroadcastType::NUMPY) &&
                                  merged.compatible(shape),
                              "Maskwise: input ", i, " does not broadcast to scores: ", other,
                              ", scores are ", shape);
    }
    set_output_type(0, type, shape);
}

std::shared_ptr<ov::Node>
masked_softmax::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<masked_softmax>(inputs, steps_);
}

bool masked_softmax::visit_attributes(ov::AttributeVisitor& visitor) {
    saved_steps saved = save(steps_);
    visitor.on_attribute("operators", saved.operators);
    visitor.on_attribute("operands", saved.operands);
    steps_ = restore(saved, get_input_size() == 0 ? 0 : get_input_size() - 1);
    return true;
}

void masked_softmax::run(const ov::TensorVector& inputs, ov::Tensor& output) const {
    output.set_shape(inputs[0].get_shape());
    std::vector<tensor_desc> descs;
    std::vector<const void*> addresses;
    fusion::operand_shapes shapes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        descs.push_back(is_cond(i) ? describe_cond(inputs[i]) : describe(inputs[i]));
        addresses.push_back(inputs[i].data());
        fusion::append(shapes, descs.back());
    }
    const tensor_desc dst = describe(output);
    fusion::append(shapes, dst);
    const auto compiled = compiled_->find(shapes, [&] {
        fusion::block rows;
        rows.rows.steps = steps_;
        rows.rows.soft_max.emplace();
        return fusion::compile(rows, descs, {dst});
    });
    if (compiled->dst() != dst.extents) // inputs of an evaluate that no shape inference has seen
        throw shape_error("inputs broadcast to " + to_string(compiled->dst()) + ", scores are " +
                          to_string(dst.extents));
    run_measured(*compiled, [&] { compiled->run({addresses, output.data()}); });
}

} // namespace maskwise::openvino
