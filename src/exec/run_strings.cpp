#include "exec/run_strings.hpp"

#include "exec/parts.hpp"
#include "plan/plan_data.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

namespace maskwise {
namespace {

// A short string takes some nanoseconds, a long one an allocation; waking a thread is worth about a
// thousand of them.
constexpr std::int64_t strings_per_part = 2048;

struct string_context {
    const loop_nest& nest;
    per_operand<std::byte*> at;
    std::atomic<bool> failed{false}; // set once, by the thread that then writes `failure`
    std::exception_ptr failure{};
};

// Goes through the elements of the nest from one on, as an odometer: innermost loop fastest.
class string_cursor {
public:
    string_cursor(const loop_nest& nest, const per_operand<std::byte*>& at, std::int64_t element)
        : nest_(nest), at_(at) {
        for (const int d : nest.numbers()) {
            index_[static_cast<std::size_t>(d)] = element % nest[d].extent;
            move(d, element % nest[d].extent);
            element /= nest[d].extent;
        }
    }

    void select() const {
        const bool taken = *at_[op_cond] != std::byte{0};
        const auto* from = reinterpret_cast<const std::string*>(at_[taken ? op_src_0 : op_src_1]);
        *reinterpret_cast<std::string*>(at_[op_dst]) = *from;
    }

    void advance() {
        for (const int d : nest_.numbers()) {
            std::int64_t& index = index_[static_cast<std::size_t>(d)];
            if (++index < nest_[d].extent) return move(d, 1);
            move(d, 1 - index);
            index = 0;
        }
    }

private:
    void move(int d, std::int64_t steps) {
        for (const std::size_t o : every_operand) at_[o] += nest_[d].stride_bytes[o] * steps;
    }

    const loop_nest& nest_;
    per_operand<std::byte*> at_;
    std::array<std::int64_t, max_rank> index_{};
};

void select_strings(string_context& context, std::int64_t part) {
    const std::int64_t first = part * strings_per_part;
    const std::int64_t last = std::min(first + strings_per_part, context.nest.elements);
    string_cursor cursor(context.nest, context.at, first);
    for (std::int64_t i = first; i < last; ++i, cursor.advance()) cursor.select();
}

void run_part(const void* raw_context, std::int64_t part) {
    auto& context = *static_cast<string_context*>(const_cast<void*>(raw_context));
    if (context.failed) return;
    try {
        select_strings(context, part);
    } catch (...) {
        if (!context.failed.exchange(true)) context.failure = std::current_exception();
    }
}

} // namespace

void run_strings(const select_plan& plan, const void* cond, const void* src_0, const void* src_1,
                 void* dst) {
    if (plan.nest.elements == 0) return;
    const auto& first = plan.nest.first_bytes;
    const auto element = [](const void* operand, std::int64_t offset) {
        return static_cast<std::byte*>(const_cast<void*>(operand)) + offset;
    };
    string_context context{plan.nest,
                           {element(cond, first[op_cond]), element(src_0, first[op_src_0]),
                            element(src_1, first[op_src_1]), element(dst, first[op_dst])}};
    const std::int64_t parts = (plan.nest.elements + strings_per_part - 1) / strings_per_part;
    run_parts(parts, run_part, &context);
    if (context.failure) std::rethrow_exception(context.failure);
}

} // namespace maskwise
