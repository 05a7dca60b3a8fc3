#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace maskwise::jit {

// The registers of one kind that values and intermediates are given and give back.
class register_pool {
public:
    register_pool(const char* kind, int first, int count)
        : kind_(kind), count_(count), free_(((std::uint64_t{1} << count) - 1) << first) {}

    // Throws invalid_argument where all are taken: the expression is refused, nothing is spilled.
    int take() {
        if (free_ == 0)
            throw invalid_argument("the expression needs more than the " + std::to_string(count_) +
                                   ' ' + kind_ + " registers at once");
        const int taken = __builtin_ctzll(free_);
        free_ &= free_ - 1;
        return taken;
    }
    void give_back(int taken) { free_ |= std::uint64_t{1} << taken; }

private:
    const char* kind_;
    int count_;
    std::uint64_t free_;
};

// A register for the time of a scope.
class scratch_register {
public:
    explicit scratch_register(register_pool& pool) : pool_(pool), index_(pool.take()) {}
    ~scratch_register() { pool_.give_back(index_); }
    scratch_register(const scratch_register&) = delete;
    scratch_register& operator=(const scratch_register&) = delete;
    int index() const { return index_; }

private:
    register_pool& pool_;
    int index_;
};

} // namespace maskwise::jit
