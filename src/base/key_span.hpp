#pragma once

#include <cstdint>

namespace maskwise {

// The keys [first, last). Keys are the columns of scores.
struct key_span {
    std::int64_t first = 0, last = 0;

    bool is_empty() const { return first >= last; }
    bool holds(std::int64_t begin, std::int64_t end) const { return first <= begin && end <= last; }
    bool meets(std::int64_t begin, std::int64_t end) const {
        return !is_empty() && first < end && begin < last;
    }
};

} // namespace maskwise
