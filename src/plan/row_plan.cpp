#include "plan/row_plan.hpp"

#include "base/error.hpp"
#include "plan/collapse.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>

namespace maskwise {
namespace {

enum class role : std::uint8_t { input, cond, result };

void require_type(data_type type, role as, const char* name) {
    if (as == role::cond && type != data_type::boolean)
        throw argument_error("cond is " + std::string(to_string(type)) + ", expected boolean");
    const bool is_known =
        as == role::cond || computes_in_f32(type) || (as == role::result && is_8_bit_integer(type));
    if (!is_known)
        throw argument_error(std::string(name) + " is " + std::string(to_string(type)) +
                             "; rows are f32, bf16 or f16");
}

row_operand make_operand(const tensor_desc& desc, const dims& shape, role as, const char* name) {
    require_type(desc.type, as, name);
    row_operand operand;
    operand.type = elem_type_of(desc.type);
    operand.width_bytes = static_cast<std::int64_t>(width_bytes(desc.type));
    const dims strides = broadcast_strides(desc, shape);
    const std::int64_t column_bytes = strides[shape.rank() - 1];
    operand.is_scalar = column_bytes == 0;
    if (column_bytes != 0 && element_count(shape) > 0 && column_bytes != operand.width_bytes)
        throw argument_error(std::string(name) + " is not dense along the row: " +
                             std::to_string(column_bytes) + " bytes a column");
    operand.strides_bytes = without_last(strides, 1);
    return operand;
}

row_operand make_statistics(const tensor_desc& desc, dims shape) {
    shape[shape.rank() - 1] = 1;
    if (desc.type != data_type::f32 || desc.extents != shape)
        throw argument_error("statistics are " + std::string(to_string(desc.type)) + ' ' +
                             to_string(desc.extents) + ", expected f32 " + to_string(shape));
    span_bytes(desc); // throws on overflow
    row_operand statistics = make_operand(desc, shape, role::input, "statistics");
    require_apart(desc, "statistics");
    return statistics;
}

role role_of(const row_desc& desc, std::size_t operand) {
    const auto is_its_cond = [operand](const row_step& step) {
        const auto* select = std::get_if<row_select>(&step);
        return select != nullptr && select->cond == operand;
    };
    return std::ranges::any_of(desc.steps, is_its_cond) ? role::cond : role::input;
}

bool works_along_rows(const row_desc& desc) {
    return desc.soft_max || std::ranges::any_of(desc.steps, is_causal);
}

void require_sizes(const row_desc& desc) {
    const dims& shape = desc.scores.extents;
    if ((shape.empty() && works_along_rows(desc)) || desc.result.extents != shape)
        throw argument_error("scores " + to_string(shape) + " and result " +
                             to_string(desc.result.extents) + " are not rows of one shape");
    if (desc.operands.size() > max_row_operands || desc.steps.size() > max_row_actions)
        throw argument_error(std::to_string(desc.operands.size()) + " operands and " +
                             std::to_string(desc.steps.size()) + " steps are too many");
}

// Operands may have one element per row. Scores must not, because they are read column by column.
void require_moving(const row_operand& scores, std::int64_t columns) {
    if (scores.is_scalar && columns > 1)
        throw argument_error("the scores are one element for each row of " +
                             std::to_string(columns));
}

void require_one_masked_value(const row_plan& plan) {
    for (const row_step& step : plan.steps)
        if (is_causal(step) && !plan.operands[std::get<row_select>(step).side].is_scalar)
            throw argument_error("the masked value of a causal mask changes along the row");
}

void require_layouts(const row_desc& desc) {
    const auto require = [&](const tensor_desc& tensor) {
        span_bytes(tensor); // throws on overflow
        if (!broadcasts_one_way(tensor.extents, desc.scores.extents))
            throw argument_error("an operand " + to_string(tensor.extents) +
                                 " does not broadcast to the rows of " +
                                 to_string(desc.scores.extents));
    };
    require(desc.scores);
    require(desc.result);
    std::ranges::for_each(desc.operands, require);
    require_apart(desc.result, "the result");
}

// Returns the chain after merging the loops of all tensors. The last dimension is the result's
// innermost loop.
row_desc collapsed(row_desc desc) {
    operand_descs<max_row_operands + 2> tensors{&desc.scores};
    for (std::size_t i = 0; i < desc.operands.size(); ++i) tensors[1 + i] = &desc.operands[i];
    tensors.back() = &desc.result;
    const auto nest = collapse(tensors, [] {}); // overlapping elements were refused before
    const auto describe = [&](tensor_desc& tensor, std::size_t number) {
        tensor.extents = tensor.strides_bytes = {};
        for (int i = nest.rank - 1; i >= 0; --i) {
            tensor.extents.push_back(nest[i].extent);
            tensor.strides_bytes.push_back(nest[i].stride_bytes[number]);
        }
        if (nest.rank == 0) tensor.extents = {1}, tensor.strides_bytes = {0};
    };
    describe(desc.scores, 0);
    for (std::size_t i = 0; i < desc.operands.size(); ++i) describe(desc.operands[i], 1 + i);
    describe(desc.result, tensors.size() - 1);
    return desc;
}

bool can_collapse(const row_desc& desc) {
    return !works_along_rows(desc) && !desc.statistics && element_count(desc.result.extents) > 0 &&
           std::ranges::none_of(desc.result.strides_bytes, [](auto stride) { return stride < 0; });
}

// Cuts long rows into pieces, which threads share like rows.
void cut_rows(row_plan& plan) {
    constexpr std::int64_t piece = 4096;
    if (plan.columns <= piece) return;
    const auto cut = [](row_operand& operand) {
        operand.strides_bytes.push_back(operand.is_scalar ? 0 : piece * operand.width_bytes);
    };
    cut(plan.scores);
    cut(plan.result);
    for (row_operand& operand : plan.operands) cut(operand);
    const std::int64_t pieces = (plan.columns + piece - 1) / piece; // mutate.py: skip
    plan.last_columns = plan.columns - (pieces - 1) * piece;
    plan.columns = piece;
    plan.outer.push_back(pieces);
    plan.rows *= pieces;
}

void lay_out_rows(const dims& shape, row_plan& plan) {
    plan.outer = without_last(shape, 1);
    plan.columns = plan.last_columns = shape[shape.rank() - 1];
    plan.rows = element_count(plan.outer);
}

void add_operands(const row_desc& desc, row_plan& plan) {
    const dims& shape = desc.scores.extents;
    plan.scores = make_operand(desc.scores, shape, role::input, "scores");
    require_moving(plan.scores, plan.columns);
    plan.result = make_operand(desc.result, shape, role::result, "the result");
    for (const tensor_desc& operand : desc.operands)
        plan.operands.push_back(
            make_operand(operand, shape, role_of(desc, plan.operands.size()), "an operand"));
}

// Cannot overflow: elements of the result do not overlap, so columns are fewer than max_span_bytes.
bool pays_to_stream(const row_plan& plan, std::int64_t stream_from_bytes) {
    return plan.rows > 0 &&
           plan.columns * (bytes_of(plan.scores.type) + bytes_of(plan.result.type)) >=
               stream_from_bytes / plan.rows;
}

constexpr const char* operator_names[] = {
#define MASKWISE_ROW_BINARY(name, ...) #name,
#define MASKWISE_ROW_REVERSED(name) #name,
#define MASKWISE_ROW_SELECT(name) #name,
#define MASKWISE_ROW_UNARY(name, ...) #name,
#define MASKWISE_ROW_ROUNDING(name) #name,
#include "kernel/rows/operators.inc"
};

struct step_name {
    const char* operator()(const row_select& step) const {
        return step.cond ? "select" : "select_causal";
    }
    const char* operator()(const auto& step) const {
        return operator_names[static_cast<std::size_t>(step.op)];
    }
};

std::string end_of(const row_plan& plan) {
    std::string text = plan.soft_max ? " soft_max" : "";
    if (plan.statistics) text += " statistics";
    if (plan.result.type == elem_type::i8 || plan.result.type == elem_type::u8) text += " quantize";
    return text;
}

} // namespace

std::span<const char* const> row_operator_names() {
    return operator_names;
}

bool is_causal(const row_step& step) {
    const auto* const select = std::get_if<row_select>(&step);
    return select != nullptr && !select->cond;
}

row_plan make_row_plan(const row_desc& requested, isa target, std::int64_t stream_from_bytes) {
    require_sizes(requested);
    require_layouts(requested);
    const bool collapses = can_collapse(requested);
    const row_desc desc = collapses ? collapsed(requested) : requested;
    row_plan plan;
    plan.kernels = &kernel_table_for(target).rows;
    lay_out_rows(desc.scores.extents, plan);
    add_operands(desc, plan);
    plan.steps = desc.steps;
    require_one_masked_value(plan);
    plan.soft_max = desc.soft_max;
    if (desc.quantize) {
        plan.inverse_scale = 1.0F / desc.quantize->scale;
        plan.zero_point = desc.quantize->zero_point;
    }
    plan.streams = pays_to_stream(plan, stream_from_bytes);
    if (desc.statistics) plan.statistics = make_statistics(*desc.statistics, desc.scores.extents);
    if (collapses) cut_rows(plan);
    return plan;
}

std::string to_string(const row_plan& plan) {
    std::string text = std::to_string(plan.rows) + " rows of " + std::to_string(plan.columns) + ':';
    for (const row_step& step : plan.steps) text.append(" ").append(std::visit(step_name(), step));
    return text + end_of(plan);
}

} // namespace maskwise
