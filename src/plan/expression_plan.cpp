#include "plan/expression_plan.hpp"

#include "base/error.hpp"
#include "tensor/broadcast.hpp"

namespace maskwise {
namespace {

// Enough for the call to cost nothing, few enough for threads to share the work. Whole cache lines
// of any type.
constexpr std::int64_t most_columns = 16 << 10;
constexpr std::int64_t elements_per_tile = 16 << 10;

using expression_nest = basic_loop_nest<jit::max_operands>;

std::string describe(const tensor_desc& operand) {
    return std::string(to_string(operand.type)) + ' ' + to_string(operand.extents) +
           ", strides in bytes " + to_string(operand.strides_bytes);
}

void check_inputs(const expression_desc& desc) {
    std::size_t next = 0;
    for (const jit::node& node : desc.expression.nodes) {
        if (node.kind != jit::node_kind::input) continue;
        if (next == desc.inputs.size())
            throw invalid_argument("the expression has more inputs than the " +
                                   std::to_string(next) + " given");
        const tensor_desc& input = desc.inputs[next];
        const std::string name = "input " + std::to_string(next++);
        if (input.type != node.type || input.extents.rank() != input.strides_bytes.rank())
            throw invalid_argument(name + " (" + describe(input) + ") is not " +
                                   std::string(to_string(node.type)) + " with strides");
        span_bytes(input); // throws on overflow
        require_one_way(input.extents, desc.dst.extents, name);
    }
    span_bytes(desc.dst);
    if (desc.dst.type != desc.expression.result)
        throw invalid_argument("dst (" + describe(desc.dst) + ") is not " +
                               std::string(to_string(desc.expression.result)));
}

expression_nest make_nest(const expression_desc& desc) {
    operand_descs<jit::max_operands> operands{};
    std::ranges::transform(desc.inputs, operands.begin(), [](const auto& input) { return &input; });
    operands[jit::dst_operand] = &desc.dst;
    return collapse<jit::max_operands>(operands, [&] {
        throw invalid_argument("dst (" + describe(desc.dst) + ") has elements that overlap");
    });
}

// Whether the operand can be read, or written, along dst's innermost loop.
bool runs_along(const tensor_desc& operand, const tensor_desc& dst) {
    const auto nest = collapse<2>({&operand, &dst}, [] {});
    if (nest.rank == 0) return true;
    const auto& step = nest[0].stride_bytes;
    return step[1] == nest.width_bytes[1] && (step[0] == 0 || step[0] == nest.width_bytes[0]);
}

// The extents of `operand` without gaps, its dimensions in the order of dst's strides.
tensor_desc in_order_of(const tensor_desc& dst, const tensor_desc& operand) {
    const auto* const end = dst.strides_bytes.end();
    const dims strides(std::span(end - operand.extents.rank(), end));
    return dense_desc(operand.type, operand.extents, order_of(strides));
}

// Gives the operand a place in scratch memory and describes it as it lies there.
void reorder(expression_plan& plan, std::size_t number, tensor_desc& operand) {
    const tensor_desc given = operand;
    operand = in_order_of(plan.desc.dst, given);
    const bool is_dst = number == jit::dst_operand;
    const tensor_desc &from = is_dst ? operand : given, &to = is_dst ? given : operand;
    plan.reorderings.push_back({make_copy_plan(from, to), number, plan.scratch_bytes});
    plan.scratch_bytes += padded_bytes(static_cast<std::size_t>(span_bytes(operand)));
}

void bring_into_order(expression_plan& plan) {
    auto& [expression, inputs, dst] = plan.desc;
    if (!runs_along(dst, dst)) reorder(plan, jit::dst_operand, dst);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!runs_along(inputs[i], dst)) reorder(plan, i, inputs[i]);
}

column_class class_of(const expression_nest& nest, std::size_t operand, const tensor_desc& desc) {
    const std::int64_t step = nest.rank == 0 ? 0 : nest[0].stride_bytes[operand];
    if (step == 0) return column_class::zero;
    if (step == nest.width_bytes[operand]) return column_class::unit;
    throw invalid_argument(describe(desc) + " steps by " + std::to_string(step) +
                           " bytes along dst's innermost loop");
}

void choose_tiles(expression_plan& plan) {
    const expression_nest& nest = plan.nest;
    plan.columns = std::min(nest[0].extent, most_columns); // 1 where there is no such loop
    plan.rows = std::clamp<std::int64_t>(elements_per_tile / plan.columns, 1, nest[1].extent);
    plan.tiles = 1;
    for (const int d : nest.numbers()) {
        const std::int64_t step = d == 0 ? plan.columns : d == 1 ? plan.rows : 1;
        plan.tiles *= (nest[d].extent + step - 1) / step;
    }
}

void compile_code(expression_plan& plan, isa target) {
    const expression_desc& desc = plan.desc;
    std::vector<column_class> classes;
    for (std::size_t i = 0; i < desc.inputs.size(); ++i) {
        classes.push_back(class_of(plan.nest, i, desc.inputs[i]));
        plan.moved_bytes += distinct_bytes(plan.nest, i);
    }
    plan.moved_bytes += distinct_bytes(plan.nest, jit::dst_operand);
    plan.code = jit::compile(desc.expression, classes, plan.stores, target);
}

} // namespace

std::shared_ptr<const expression_plan> make_expression_plan(expression_desc desc, isa target,
                                                            std::int64_t stream_from_bytes) {
    jit::validate(desc.expression);
    check_inputs(desc);
    auto plan = std::make_shared<expression_plan>();
    plan->desc = std::move(desc);
    bring_into_order(*plan);
    plan->nest = make_nest(plan->desc);
    if (plan->nest.elements == 0) return plan;
    if (plan->nest.elements * plan->nest.width_bytes.back() >= stream_from_bytes)
        plan->stores = store_policy::stream;
    choose_tiles(*plan);
    compile_code(*plan, target);
    return plan;
}

std::string to_string(const expression_plan& plan) {
    std::string text = "expression,";
    for (int d = plan.nest.rank - 1; d >= 0; --d)
        text += std::to_string(plan.nest[d].extent) + (d > 0 ? "x" : "");
    text += ",tile " + std::to_string(plan.rows) + 'x' + std::to_string(plan.columns);
    text += plan.stores == store_policy::stream ? ",stream," : ",plain,";
    return text + to_string(plan.desc.expression) +
           (plan.code ? ',' + plan.code->memory().name() : "");
}

} // namespace maskwise
