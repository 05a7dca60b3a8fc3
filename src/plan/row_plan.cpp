#include "plan/row_plan.hpp"

#include "base/error.hpp"
#include "plan/collapse.hpp"

#include <algorithm>

namespace maskwise {
namespace {

row_type type_of(data_type type, bool is_result, const char* what) {
    if (is_result && type == data_type::i8) return row_type::i8;
    if (is_result && type == data_type::u8) return row_type::u8;
    switch (type) {
    case data_type::f32:
        return row_type::f32;
    case data_type::bf16:
        return row_type::bf16;
    case data_type::f16:
        return row_type::f16;
    default:
        break;
    }
    throw invalid_argument(std::string(what) + " is " + std::string(to_string(type)) +
                           "; rows are f32, bf16 or f16");
}

// Strides of `desc` in the dimensions of `shape`, right-aligned; 0 where it is broadcast.
dims aligned_strides(const tensor_desc& desc, const dims& shape, const char* what) {
    const int missing = shape.rank() - desc.extents.rank();
    dims strides(shape.rank(), 0);
    for (int i = 0; i < desc.extents.rank() && missing >= 0; ++i) {
        const std::int64_t extent = desc.extents[i];
        if (extent != 1 && extent != shape[missing + i])
            throw invalid_argument(std::string(what) + ' ' + to_string(desc.extents) +
                                   " does not broadcast to the rows of " + to_string(shape));
        if (extent != 1) strides[missing + i] = desc.strides_bytes[i];
    }
    if (missing < 0)
        throw invalid_argument(std::string(what) + ' ' + to_string(desc.extents) +
                               " has more dimensions than " + to_string(shape));
    return strides;
}

enum class role : std::uint8_t { input, cond, result };

row_operand make_operand(const tensor_desc& desc, const dims& shape, role as, const char* what) {
    row_operand operand;
    if (as != role::cond) operand.type = type_of(desc.type, as == role::result, what);
    if (as == role::cond && desc.type != data_type::boolean)
        throw invalid_argument("cond is " + std::string(to_string(desc.type)) +
                               ", expected boolean");
    const dims strides = aligned_strides(desc, shape, what);
    const std::int64_t column_bytes = strides[shape.rank() - 1];
    operand.is_scalar = column_bytes == 0;
    if (column_bytes != 0 && column_bytes != static_cast<std::int64_t>(width_bytes(desc.type)))
        throw invalid_argument(std::string(what) + " is not dense along the row: " +
                               std::to_string(column_bytes) + " bytes a column");
    for (int i = 0; i + 1 < shape.rank(); ++i) operand.strides_bytes.push_back(strides[i]);
    return operand;
}

// Rows are written by several threads at once.
void require_apart(const tensor_desc& written, const char* what) {
    collapse<1>({&written}, [&] {
        throw invalid_argument(std::string(what) + " with strides in bytes " +
                               to_string(written.strides_bytes) + " has elements that overlap");
    });
}

row_operand make_statistics(const tensor_desc& desc, dims shape) {
    shape[shape.rank() - 1] = 1;
    if (desc.type != data_type::f32 || desc.extents != shape)
        throw invalid_argument("statistics are " + std::string(to_string(desc.type)) + ' ' +
                               to_string(desc.extents) + ", expected f32 " + to_string(shape));
    require_apart(desc, "statistics");
    return make_operand(desc, shape, role::input, "statistics");
}

role role_of(const row_desc& desc, std::size_t index) {
    return std::any_of(
               desc.steps.begin(), desc.steps.end(),
               [index](const row_step& step) { return step.cond == static_cast<int>(index); })
               ? role::cond
               : role::input;
}

void require_sizes(const row_desc& desc) {
    const dims& shape = desc.scores.extents;
    if (shape.rank() < 1 || desc.result.extents != shape)
        throw invalid_argument("scores " + to_string(shape) + " and result " +
                               to_string(desc.result.extents) + " are not rows of one shape");
    if (desc.operands.size() > max_row_operands || desc.steps.size() > max_row_actions)
        throw invalid_argument(std::to_string(desc.operands.size()) + " operands and " +
                               std::to_string(desc.steps.size()) + " steps are too many");
}

// An operand of one element a row becomes a value; scores are read column by column.
void require_moving(const row_operand& scores, std::int64_t columns) {
    if (scores.is_scalar && columns > 1)
        throw invalid_argument("the scores are one element for each row of " +
                               std::to_string(columns));
}

void require_soft_max_last(const row_desc& desc) {
    for (std::size_t i = 0; i + 1 < desc.steps.size(); ++i)
        if (desc.steps[i].kind == row_step_kind::soft_max)
            throw invalid_argument("step " + std::to_string(i) + " is a SoftMax, not the last");
}

const char* name_of(const row_step& step) {
    if (step.kind == row_step_kind::select_causal) return "select_causal";
    constexpr const char* names[] = {"add",     "subtract",   "multiply", "divide",
                                     "replace", "select",     "select",   "exp",
                                     "tanh",    "round_bf16", "round_f16"};
    return names[static_cast<std::size_t>(step.op)];
}

void require_one_masked_value(const row_plan& plan) {
    for (const row_step& step : plan.steps)
        if (step.kind == row_step_kind::select_causal &&
            !plan.operands[static_cast<std::size_t>(step.operand)].is_scalar)
            throw invalid_argument("the masked value of a causal mask changes along the row");
}

std::string end_of(const row_plan& plan) {
    std::string text = plan.has_soft_max ? " soft_max" : "";
    if (plan.statistics) text += " statistics";
    if (plan.result.type == row_type::i8 || plan.result.type == row_type::u8) text += " quantize";
    return text;
}

} // namespace

row_plan make_row_plan(const row_desc& desc, isa target, std::int64_t stream_from_bytes) {
    require_sizes(desc);
    require_soft_max_last(desc);
    const dims& shape = desc.scores.extents;
    row_plan plan;
    plan.kernels = &kernel_table_for(target).rows;
    for (int i = 0; i + 1 < shape.rank(); ++i) plan.outer.push_back(shape[i]);
    plan.columns = shape[shape.rank() - 1];
    plan.rows = element_count(plan.outer);
    plan.scores = make_operand(desc.scores, shape, role::input, "scores");
    require_moving(plan.scores, plan.columns);
    plan.result = make_operand(desc.result, shape, role::result, "the result");
    require_apart(desc.result, "the result");
    for (const tensor_desc& operand : desc.operands)
        plan.operands.push_back(
            make_operand(operand, shape, role_of(desc, plan.operands.size()), "an operand"));
    plan.steps = desc.steps;
    if (!plan.steps.empty() && plan.steps.back().kind == row_step_kind::soft_max) {
        plan.has_soft_max = true;
        plan.inf_as_zero = plan.steps.back().inf_as_zero;
        plan.steps.pop_back();
    }
    require_one_masked_value(plan);
    plan.scale = desc.scale;
    plan.zero_point = desc.zero_point;
    const std::int64_t row_bytes =
        plan.columns * (bytes_of(plan.scores.type) + bytes_of(plan.result.type));
    plan.streams = plan.rows > 0 && row_bytes >= stream_from_bytes / plan.rows;
    if (desc.statistics) plan.statistics = make_statistics(*desc.statistics, shape);
    return plan;
}

std::string to_string(const row_plan& plan) {
    std::string text = std::to_string(plan.rows) + " rows of " + std::to_string(plan.columns) + ':';
    for (const row_step& step : plan.steps) text.append(" ").append(name_of(step));
    return text + end_of(plan);
}

} // namespace maskwise
