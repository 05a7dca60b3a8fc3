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
    for (const jit::node& each : desc.what.nodes) {
        if (each.kind != jit::node_kind::input) continue;
        if (next == desc.inputs.size())
            throw invalid_argument("the expression has more inputs than the " +
                                   std::to_string(next) + " given");
        const tensor_desc& input = desc.inputs[next];
        const std::string name = "input " + std::to_string(next++);
        if (input.type != each.type || input.extents.rank() != input.strides_bytes.rank())
            throw invalid_argument(name + " (" + describe(input) + ") is not " +
                                   std::string(to_string(each.type)) + " with strides");
        span_bytes(input); // throws on overflow
        require_one_way(input.extents, desc.dst.extents, name);
    }
    span_bytes(desc.dst);
    if (desc.dst.type != desc.what.result)
        throw invalid_argument("dst (" + describe(desc.dst) + ") is not " +
                               std::string(to_string(desc.what.result)));
}

expression_nest make_nest(const expression_desc& desc) {
    operand_descs<jit::max_operands> operands{};
    std::ranges::transform(desc.inputs, operands.begin(), [](const auto& each) { return &each; });
    operands[jit::dst_operand] = &desc.dst;
    return collapse<jit::max_operands>(operands, [&] {
        throw invalid_argument("dst (" + describe(desc.dst) + ") has elements that overlap");
    });
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
    class_of(plan.nest, jit::dst_operand, desc.dst);
    plan.moved_bytes += distinct_bytes(plan.nest, jit::dst_operand);
    plan.code = jit::compile(desc.what, classes, plan.stores, target);
}

} // namespace

bool runs_along(const tensor_desc& operand, const tensor_desc& dst) {
    const auto nest = collapse<2>({&operand, &dst}, [] {});
    if (nest.rank == 0) return true;
    const auto& step = nest[0].stride_bytes;
    return step[1] == nest.width_bytes[1] && (step[0] == 0 || step[0] == nest.width_bytes[0]);
}

std::shared_ptr<const expression_plan> make_expression_plan(expression_desc desc, isa target,
                                                            std::int64_t stream_from_bytes) {
    jit::validate(desc.what);
    check_inputs(desc);
    auto plan = std::make_shared<expression_plan>();
    plan->desc = std::move(desc);
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
    return text + to_string(plan.desc.what) + (plan.code ? ',' + plan.code->memory().name() : "");
}

} // namespace maskwise
