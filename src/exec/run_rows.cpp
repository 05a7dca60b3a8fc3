#include "exec/run_rows.hpp"

#include "base/key_span.hpp"
#include "exec/parts.hpp"
#include "tensor/position.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace maskwise {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

constexpr std::int64_t whole_lines(std::int64_t columns) {
    constexpr std::int64_t columns_of_line = 16; // of f32
    return (columns + columns_of_line - 1) / columns_of_line * columns_of_line;
}

// Adjacent columns of a row that are all read from the scores, or all start as one value. In a
// causal row, the columns after the boundary start as the masked value. The plan's actions from
// first_action on apply to the columns.
struct source_span : key_span {
    const std::byte* scores = nullptr; // null: every column is `value`
    float value = 0;
    std::size_t first_action = 0;
};

// Row strides, in bytes, of an action's side operand and cond.
struct row_move {
    std::int64_t side = 0, cond = 0;
};

class row_walk {
public:
    row_walk(const row_plan& plan, const row_pointers& pointers, std::int64_t first)
        : plan_(plan), pointers_(pointers),
          streams_(plan.streams && pointers.scores != pointers.result), // mutate.py: skip
          position_(first, plan.outer) {}

    void run(std::int64_t rows) {
        bind();
        run_row();
        for (std::int64_t rest = rows - 1; rest > 0; --rest) {
            next_row();
            run_row();
        }
        if (streams_) finish_streaming(); // mutate.py: skip
    }

private:
    // cut_rows splits long rows into pieces of plan_.columns. The last piece may be shorter.
    std::int64_t columns() const {
        const int last = plan_.outer.rank() - 1;
        const bool is_last = last >= 0 && position_[last] == plan_.outer[last] - 1;
        return is_last ? plan_.last_columns : plan_.columns;
    }
    bool is_constant(const source_span& range) const {
        return range.scores == nullptr && range.first_action == action_count_;
    }
    row_encoding encoding(float factor) const {
        return {plan_.result.type, factor * plan_.inverse_scale, plan_.zero_point, streams_};
    }
    const std::byte* address(const void* base, const row_operand& operand) const {
        return static_cast<const std::byte*>(base) + offset_of(position_, operand.strides_bytes);
    }
    std::int64_t number_in_matrix() const {
        return position_.rank() == 0 ? 0 : position_[position_.rank() - 1];
    }

    // Converts f32 and bf16 here, because a kernel call per row would cost more than a short row.
    float element_at(const std::byte* address, elem_type type) const {
        if (type == elem_type::f16) {
            float value[row_block_elems];
            plan_.kernels->run({{type, address}, nullptr, 0, 0, 1}, value);
            return value[0];
        }
        if (type == elem_type::f32) {
            float value;
            std::memcpy(&value, address, sizeof(value));
            return value;
        }
        std::uint16_t upper_half;
        std::memcpy(&upper_half, address, sizeof(upper_half));
        return std::bit_cast<float>(std::uint32_t{upper_half} << 16);
    }

    std::int64_t move_of(std::size_t operand) const {
        const dims& strides = plan_.operands[operand].strides_bytes;
        return strides.empty() ? 0 : strides[strides.rank() - 1];
    }

    void add_action(const row_action& action, const row_move& move) {
        actions_[action_count_] = action;
        moves_[action_count_++] = move;
    }

    // An operand with one element per row becomes a value. If the value changes from row to row,
    // every row calls bind().
    row_side side_of(std::size_t number, std::int64_t& move) {
        const row_operand& operand = plan_.operands[number];
        row_side side{operand.type, address(pointers_.operands[number], operand)};
        if (!operand.is_scalar) {
            move = move_of(number);
            return side;
        }
        side.value = element_at(side.data, operand.type);
        side.data = nullptr;
        may_move_ = may_move_ && move_of(number) == 0;
        return side;
    }

    void bind_step(const row_change& step) {
        row_action action{step.op};
        action.constant = step.constant;
        add_action(action, {});
    }

    void bind_step(const row_combine& step) {
        row_move move;
        row_action action{step.op};
        action.side = side_of(step.side, move.side);
        add_action(action, move);
    }

    // If cond has one byte per row, the step replaces the row by the side operand or keeps the row.
    void bind_step(const row_select& step) {
        if (!step.cond) return bind_causal(step.side);
        const row_operand& cond = plan_.operands[*step.cond];
        const std::byte* bytes = address(pointers_.operands[*step.cond], cond);
        if (cond.is_scalar) {
            may_move_ = may_move_ && move_of(*step.cond) == 0;
            const bool is_row = (*bytes != std::byte{0}) == (step.op == row_operator::select_kept);
            if (!is_row) bind_step(row_combine{row_operator::replace, step.side});
            return;
        }
        row_move move{0, move_of(*step.cond)};
        row_action action{step.op};
        action.side = side_of(step.side, move.side);
        action.cond = bytes;
        add_action(action, move);
    }

    void bind_causal(std::size_t side) {
        std::int64_t move = 0; // unused: the side operand has one element per row
        ranges_[1] = {{0, plan_.columns}, nullptr, side_of(side, move).value, action_count_};
        range_count_ = 2;
        set_boundary();
    }

    // Columns up to the row's number plus causal_offset are unmasked.
    void set_boundary() {
        ranges_[0].last = ranges_[1].first = std::clamp<std::int64_t>(
            number_in_matrix() + pointers_.causal_offset + 1, 0, plan_.columns);
    }

    void bind() {
        action_count_ = 0;
        range_count_ = 1;
        may_move_ = true;
        result_ = const_cast<std::byte*>(address(pointers_.result, plan_.result));
        ranges_[0] = {{0, columns()}, address(pointers_.scores, plan_.scores), 0, 0};
        for (const row_step& step : plan_.steps)
            std::visit([this](const auto& kind) { bind_step(kind); }, step);
    }

    void move_down() {
        const int last = plan_.outer.rank() - 1;
        result_ += plan_.result.strides_bytes[last];
        ranges_[0].scores += plan_.scores.strides_bytes[last];
        for (std::size_t i = 0; i < action_count_; ++i) {
            row_action& action = actions_[i];
            const row_move& move = moves_[i];
            if (action.side.data != nullptr) action.side.data += move.side;
            if (action.cond != nullptr) action.cond += move.cond;
        }
        ranges_[0].last = columns();
        if (range_count_ == 2) set_boundary();
    }

    void next_row() {
        int i = plan_.outer.rank() - 1;
        if (++position_[i] < plan_.outer[i] && may_move_) return move_down();
        while (position_[i] == plan_.outer[i]) {
            position_[i] = 0;
            ++position_[--i];
        }
        bind();
    }

    row_piece piece_of(const source_span& range, std::int64_t first, std::int64_t last) const {
        return {{plan_.scores.type, range.scores, range.value},
                actions_.data() + range.first_action,
                action_count_ - range.first_action,
                first,
                last - first};
    }

    float run_piece(const source_span& range, std::int64_t first, std::int64_t last, float* dst) {
        return plan_.kernels->run(piece_of(range, first, last), dst);
    }

    void store(const float* values, std::int64_t first, std::int64_t count, float factor) const {
        const std::int64_t width = bytes_of(plan_.result.type);
        plan_.kernels->store(values, encoding(factor), result_ + first * width, count);
    }

    void fill(std::int64_t first, float value) {
        const std::int64_t width = bytes_of(plan_.result.type);
        plan_.kernels->fill(value, encoding(1.0F), result_ + first * width, plan_.columns - first);
    }

    // Computes up to held_row_columns columns at a time into the buffer. Then calls visit(first
    // column, count, maximum) for these columns.
    template <typename Visit>
    void for_each_piece(Visit visit) {
        for (std::size_t i = 0; i < range_count_; ++i)
            for (std::int64_t first = ranges_[i].first; first < ranges_[i].last;
                 first += held_row_columns) {
                const std::int64_t count = std::min(held_row_columns, ranges_[i].last - first);
                visit(first, count, run_piece(ranges_[i], first, first + count, buffer_.data()));
            }
    }

    // A row without a SoftMax needs one pass and no buffer.
    void write_row() {
        for (std::size_t i = 0; i < range_count_; ++i) {
            const source_span& range = ranges_[i];
            if (range.is_empty()) continue;
            plan_.kernels->write(piece_of(range, range.first, range.last), encoding(1.0F), result_);
        }
    }

    // Computes exp(value - shift) with the row kernel, because the plugin does not link libm.
    float exponential(float value, float shift) const {
        float lanes[row_block_elems] = {value};
        return plan_.kernels->exp_sum(lanes, shift, 1, nullptr);
    }

    void finish_statistics(float maximum, float sum) {
        if (!plan_.statistics) return;
        constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
        const float value = sum > 0.0F ? maximum + plan_.kernels->log(sum) : not_a_number;
        auto* dst = const_cast<std::byte*>(address(pointers_.statistics, *plan_.statistics));
        std::memcpy(dst, &value, sizeof(value));
    }

    void zero_row() {
        fill(0, 0.0F);
        finish_statistics(0.0F, 1.0F);
    }

    // Whether the buffer's first `count` values are all -infinity, not NaN. Their maximum, which
    // ignores NaN, must be -infinity. Replaces the values by their exponentials, 0 or NaN. A NaN
    // makes the caller's sum NaN.
    bool is_minus_infinity(std::int64_t count) {
        return count == 0 || plan_.kernels->exp_sum(buffer_.data(), 0.0F, count, nullptr) == 0.0F;
    }

    // Returns the row to prefetch while exponentials are computed and stored, because memory is
    // idle then. Returns null if no row is prefetched.
    const std::byte* scores_ahead() const {
        const bool is_alone = plan_.outer.empty() || !may_move_; // mutate.py: skip
        if (is_alone || !plan_.streams || ranges_[0].scores == nullptr)
            return nullptr;                                      // mutate.py: skip
        if (plan_.scores.type != elem_type::f32) return nullptr; // mutate.py: skip
        // A distance of 16 KiB fits L1, and is faster than a distance of one short row.
        constexpr std::int64_t ahead_bytes = 16 << 10;
        const std::int64_t rows = std::max<std::int64_t>(1, ahead_bytes / (4 * plan_.columns));
        const int last = plan_.outer.rank() - 1; // mutate.py: skip
        return ranges_[0].scores + rows * plan_.scores.strides_bytes[last];
    }

    // If no action changes the masked value, one exponential serves all masked columns.
    void held_soft_max() {
        const source_span &computed = ranges_[0], &masked = ranges_[1];
        const bool has_constant = range_count_ == 2 && is_constant(masked) && !masked.is_empty();
        const std::int64_t held = has_constant ? computed.last : plan_.columns;
        float maximum = minus_infinity;
        if (has_constant) maximum = masked.value;
        for (std::size_t i = 0; i < range_count_; ++i)
            if (!ranges_[i].is_empty() && ranges_[i].first < held)
                maximum = std::max(maximum, run_piece(ranges_[i], ranges_[i].first, ranges_[i].last,
                                                      buffer_.data() + ranges_[i].first));
        const row_soft_max& soft_max = *plan_.soft_max;
        if (soft_max.inf_as_zero && maximum == minus_infinity && is_minus_infinity(held))
            return zero_row();
        const float one_masked = has_constant ? exponential(masked.value, maximum) : 0.0F;
        float sum = one_masked * static_cast<float>(plan_.columns - held);
        if (held > 0) sum += plan_.kernels->exp_sum(buffer_.data(), maximum, held, scores_ahead());
        if (soft_max.nan_as_zero && !(sum > 0.0F)) return zero_row();
        // Stores the whole cache line in which the constant begins, so that the fill is aligned.
        const std::int64_t stored = std::min(plan_.columns, whole_lines(held));
        std::fill(buffer_.data() + held, buffer_.data() + stored, one_masked);
        if (stored > 0) store(buffer_.data(), 0, stored, 1.0F / sum);
        if (stored < plan_.columns) fill(stored, one_masked * (1.0F / sum));
        finish_statistics(maximum, sum);
    }

    // The first pass rescales the sum when a piece has a larger maximum. The second pass computes
    // each piece again with the final maximum and sum.
    void long_soft_max() {
        float maximum = minus_infinity, sum = 0.0F;
        for_each_piece([&](std::int64_t, std::int64_t count, float largest) {
            const float higher = std::max(maximum, largest);
            const float shift = higher == minus_infinity ? 0.0F : higher;
            if (sum != 0.0F) sum *= exponential(maximum, shift);
            sum += plan_.kernels->exp_sum(buffer_.data(), shift, count, nullptr);
            maximum = higher;
        });
        const row_soft_max& soft_max = *plan_.soft_max;
        if (soft_max.inf_as_zero && maximum == minus_infinity && sum == 0.0F) return zero_row();
        if (soft_max.nan_as_zero && !(sum > 0.0F)) return zero_row();
        for_each_piece([&](std::int64_t first, std::int64_t count, float) {
            plan_.kernels->exp_sum(buffer_.data(), maximum, count, nullptr);
            store(buffer_.data(), first, count, 1.0F / sum);
        });
        finish_statistics(maximum, sum);
    }

    void run_row() {
        if (!plan_.soft_max) return write_row();
        if (plan_.columns <= held_row_columns) return held_soft_max();
        long_soft_max();
    }

    const row_plan& plan_;
    const row_pointers& pointers_;
    const bool streams_;
    shape_position position_;
    std::byte* result_ = nullptr;
    std::array<row_action, max_row_actions> actions_;
    // Valid only if may_move_, that is, if no value changes from row to row.
    std::array<row_move, max_row_actions> moves_;
    bool may_move_ = false;
    std::size_t action_count_ = 0;
    std::array<source_span, 2> ranges_;
    std::size_t range_count_ = 1;
    alignas(64) std::array<float, held_row_columns + 2 * row_block_elems> buffer_;
};

} // namespace

void run_rows(const row_plan& plan, const row_pointers& pointers, const parallel_loop* loop) {
    if (plan.rows == 0 || plan.columns == 0) return;
    const auto run_part = [&](std::int64_t first, std::int64_t last) {
        row_walk(plan, pointers, first).run(last - first);
    };
    const std::int64_t parts =
        choose_parts(plan.rows * plan.columns, parallel_from_row_elements, plan.rows, loop);
    run_tiles_in_parts(plan.rows, parts, run_part, loop);
}

} // namespace maskwise
