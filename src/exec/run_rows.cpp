#include "exec/run_rows.hpp"

#include "exec/parallel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace maskwise {
namespace {

constexpr std::int64_t parallel_from_elements = 16 << 10;
constexpr std::int64_t parts_per_thread = 4;
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// What one thread needs for one row. Operands that stay where they are from row to row are loaded
// once.
struct row_workspace {
    alignas(64) std::array<float, max_row_columns> row;
    alignas(64) std::array<float, max_row_columns> side;
    alignas(64) std::array<std::byte, max_row_columns> cond;
    const std::byte* loaded_side = nullptr;
    const std::byte* loaded_cond = nullptr;
};

class row_walk {
public:
    row_walk(const row_plan& plan, const row_pointers& at) : plan_(plan), at_(at) {}

    void run(std::int64_t first, std::int64_t last);

private:
    void run_row(std::int64_t number);
    void apply(const row_step& step, bool soft_max_follows);
    void combine(const row_step& step);
    void select(const row_step& step);
    void select_causal(const row_step& step, bool soft_max_follows);
    void soft_max(bool inf_as_zero);
    float exponential(float value, float shift) const;
    void store_row(std::byte* to) const;
    void fill(float* from, std::int64_t count, float value) { std::fill_n(from, count, value); }
    float scalar(int operand) const;
    const float* side(int operand);
    const std::byte* cond(int operand);
    const std::byte* address(const void* base, const row_operand& operand) const;

    const row_plan& plan_;
    const row_pointers& at_;
    row_workspace work_;
    dims position_;
    std::int64_t row_in_matrix_ = 0;
    std::int64_t kept_ = 0; // columns that are computed; the others hold masked_
    float masked_ = 0.0F;   // value of columns from kept_ on
    float factor_ = 1.0F;   // applied when the row is stored
};

const std::byte* row_walk::address(const void* base, const row_operand& operand) const {
    const auto* bytes = static_cast<const std::byte*>(base);
    for (int i = 0; i < position_.rank(); ++i) bytes += position_[i] * operand.strides_bytes[i];
    return bytes;
}

float row_walk::scalar(int operand) const {
    const auto index = static_cast<std::size_t>(operand);
    float values[row_padding_elems];
    const row_operand& what = plan_.operands[index];
    plan_.kernels->load(address(at_.operands[index], what), what.type, values, 1);
    return values[0];
}

const float* row_walk::side(int operand) {
    const auto index = static_cast<std::size_t>(operand);
    const row_operand& what = plan_.operands[index];
    const std::byte* from = address(at_.operands[index], what);
    if (from != work_.loaded_side)
        plan_.kernels->load(from, what.type, work_.side.data(), plan_.columns);
    work_.loaded_side = from;
    return work_.side.data();
}

const std::byte* row_walk::cond(int operand) {
    const auto index = static_cast<std::size_t>(operand);
    const row_operand& what = plan_.operands[index];
    const std::byte* from = address(at_.operands[index], what);
    if (from == work_.loaded_cond) return work_.cond.data();
    const auto columns = static_cast<std::size_t>(plan_.columns);
    if (what.is_scalar)
        std::memset(work_.cond.data(), std::to_integer<int>(*from), columns);
    else
        std::memcpy(work_.cond.data(), from, columns);
    work_.loaded_cond = from;
    return work_.cond.data();
}

void row_walk::combine(const row_step& step) {
    const std::int64_t padded = padded_elems(plan_.columns);
    const bool is_scalar = plan_.operands[static_cast<std::size_t>(step.operand)].is_scalar;
    if (is_scalar)
        plan_.kernels->combine_scalar(work_.row.data(), scalar(step.operand), step.op, padded);
    else
        plan_.kernels->combine(work_.row.data(), side(step.operand), step.op, padded);
}

void row_walk::select(const row_step& step) {
    const std::int64_t padded = padded_elems(plan_.columns);
    const bool keep_true = step.kind == row_step_kind::select_kept;
    const std::byte* bytes = cond(step.cond);
    if (plan_.operands[static_cast<std::size_t>(step.operand)].is_scalar)
        plan_.kernels->select_scalar(work_.row.data(), bytes, scalar(step.operand), keep_true,
                                     padded);
    else
        plan_.kernels->select(work_.row.data(), bytes, side(step.operand), keep_true, padded);
}

// Columns up to the row's own number, moved by the offset, are kept.
void row_walk::select_causal(const row_step& step, bool soft_max_follows) {
    const std::int64_t boundary = row_in_matrix_ + at_.causal_offset + 1;
    kept_ = std::clamp<std::int64_t>(boundary, 0, plan_.columns);
    masked_ = scalar(step.operand);
    if (soft_max_follows) return;
    fill(work_.row.data() + kept_, plan_.columns - kept_, masked_);
    kept_ = plan_.columns;
}

// exp(value - shift) by the row kernel: the plugin needs no libm.
float row_walk::exponential(float value, float shift) const {
    float lanes[row_padding_elems];
    std::fill_n(lanes, row_padding_elems, minus_infinity);
    lanes[0] = value;
    return plan_.kernels->exp_sum(lanes, shift, row_padding_elems);
}

// All masked columns have one value, so one exponential stands for them.
void row_walk::soft_max(bool inf_as_zero) {
    float* row = work_.row.data();
    const std::int64_t padded = padded_elems(kept_), masked = plan_.columns - kept_;
    fill(row + kept_, padded - kept_, minus_infinity);
    float maximum = minus_infinity;
    if (masked > 0) maximum = masked_;
    if (kept_ > 0) maximum = std::max(plan_.kernels->maximum(row, padded), maximum);
    if (inf_as_zero && maximum == minus_infinity) {
        fill(row, plan_.columns, 0.0F);
        kept_ = plan_.columns;
        return;
    }
    const float one_masked = masked > 0 ? exponential(masked_, maximum) : 0.0F;
    float sum = one_masked * static_cast<float>(masked);
    if (kept_ > 0) sum += plan_.kernels->exp_sum(row, maximum, padded);
    fill(row + kept_, masked, one_masked);
    kept_ = plan_.columns;
    factor_ = 1.0F / sum;
}

void row_walk::apply(const row_step& step, bool soft_max_follows) {
    switch (step.kind) {
    case row_step_kind::combine:
        return combine(step);
    case row_step_kind::select_kept:
    case row_step_kind::select_masked:
        return select(step);
    case row_step_kind::select_causal:
        return select_causal(step, soft_max_follows);
    case row_step_kind::soft_max:
        return soft_max(step.inf_as_zero);
    }
}

// Without a SoftMax the selected values leave as they came, to the bit.
void row_walk::store_row(std::byte* to) const {
    if (factor_ == 1.0F && plan_.result.type == row_type::f32)
        std::memcpy(to, work_.row.data(), static_cast<std::size_t>(plan_.columns) * sizeof(float));
    else
        plan_.kernels->store(work_.row.data(), factor_, to, plan_.result.type, plan_.columns);
}

void row_walk::run_row(std::int64_t number) {
    row_in_matrix_ = number % plan_.rows_in_matrix;
    kept_ = plan_.columns;
    factor_ = 1.0F;
    plan_.kernels->load(address(at_.scores, plan_.scores), plan_.scores.type, work_.row.data(),
                        plan_.columns);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
        const bool soft_max_follows =
            i + 1 < plan_.steps.size() && plan_.steps[i + 1].kind == row_step_kind::soft_max;
        apply(plan_.steps[i], soft_max_follows);
    }
    store_row(const_cast<std::byte*>(address(at_.result, plan_.result)));
}

void row_walk::run(std::int64_t first, std::int64_t last) {
    position_ = dims(plan_.outer.rank(), 0);
    std::int64_t rest = first;
    for (int i = plan_.outer.rank() - 1; i >= 0; --i) {
        position_[i] = rest % plan_.outer[i];
        rest /= plan_.outer[i];
    }
    for (std::int64_t number = first; number < last; ++number) {
        run_row(number);
        for (int i = plan_.outer.rank() - 1; i >= 0; --i) {
            if (++position_[i] < plan_.outer[i]) break;
            position_[i] = 0;
        }
    }
}

struct run_context {
    const row_plan& plan;
    const row_pointers& at;
    std::int64_t parts;
};

void run_part(const void* raw_context, std::int64_t part) {
    const auto& context = *static_cast<const run_context*>(raw_context);
    const std::int64_t rows = context.plan.rows;
    row_walk(context.plan, context.at)
        .run(rows * part / context.parts, rows * (part + 1) / context.parts);
}

} // namespace

void run_rows(const row_plan& plan, const row_pointers& at) {
    if (plan.rows == 0 || plan.columns == 0) return;
    const int threads = available_threads();
    const bool is_small = plan.rows * plan.columns < parallel_from_elements || threads < 2;
    const std::int64_t parts = is_small ? 1 : std::min(plan.rows, threads * parts_per_thread);
    const run_context context{plan, at, parts};
    if (parts == 1)
        run_part(&context, 0);
    else
        parallel_run(parts, run_part, &context);
}

} // namespace maskwise
