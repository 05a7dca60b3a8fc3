#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace maskwise {

inline constexpr int max_rank = 12;

// Extents or strides of one tensor, outermost first: a vector of at most max_rank numbers that
// never allocates. Rank 0 is a scalar.
class dims {
public:
    dims() = default;
    dims(std::initializer_list<std::int64_t> values) {
        for (const std::int64_t value : values) push_back(value);
    }
    dims(int rank, std::int64_t value) : rank_(rank) {
        assert(rank <= max_rank);
        std::fill(begin(), end(), value);
    }

    int rank() const { return rank_; }
    bool empty() const { return rank_ == 0; }
    void push_back(std::int64_t value) {
        assert(rank_ < max_rank);
        values_[static_cast<std::size_t>(rank_++)] = value;
    }

    std::int64_t& operator[](int i) { return values_[static_cast<std::size_t>(i)]; }
    std::int64_t operator[](int i) const { return values_[static_cast<std::size_t>(i)]; }
    std::int64_t* begin() { return values_.data(); }
    std::int64_t* end() { return values_.data() + rank_; }
    const std::int64_t* begin() const { return values_.data(); }
    const std::int64_t* end() const { return values_.data() + rank_; }

    friend bool operator==(const dims& a, const dims& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    std::array<std::int64_t, max_rank> values_{};
    int rank_ = 0;
};

// "{2,3,4}", "{}" for a scalar.
std::string to_string(const dims& values);

} // namespace maskwise
