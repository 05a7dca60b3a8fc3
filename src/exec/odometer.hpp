#pragma once

#include "plan/loop_nest.hpp"

#include <span>

namespace maskwise {

// A position in nested loops (innermost first), and the address of that position in each operand.
template <class Loop>
class odometer {
public:
    // Starts at position `number`. Divides once per loop; advance() never divides.
    odometer(std::span<const Loop> loops, const per_operand<std::byte*>& begin, std::int64_t number)
        : loops_(loops), pointers_(begin) {
        for (std::size_t i = 0; i < loops_.size(); ++i) {
            index_[i] = number % loops_[i].extent;
            number /= loops_[i].extent;
            move(i, index_[i]);
        }
    }

    void advance() {
        for (std::size_t i = 0; i < loops_.size(); ++i) {
            if (++index_[i] < loops_[i].extent) return move(i, 1);
            move(i, 1 - index_[i]);
            index_[i] = 0;
        }
    }

    const per_operand<std::byte*>& pointers() const { return pointers_; }
    bool is_last(std::size_t i) const { return index_[i] + 1 == loops_[i].extent; }

private:
    void move(std::size_t i, std::int64_t steps) {
        for (const std::size_t o : every_operand) pointers_[o] += loops_[i].stride_bytes[o] * steps;
    }

    std::span<const Loop> loops_;
    per_operand<std::byte*> pointers_;
    std::array<std::int64_t, max_rank> index_{};
};

} // namespace maskwise
