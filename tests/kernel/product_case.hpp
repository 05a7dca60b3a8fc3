#pragma once

#include "kernel/kernel_table.hpp"
#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

namespace maskwise::test {

inline std::uint16_t bf16(float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

inline float number(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

inline float flushed(float value) {
    return std::abs(value) < 0x1p-126F ? 0 : value;
}

inline bool is_same(float a, float b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

// A random bf16 matrix next to a guard page.
struct bf16_matrix {
    bf16_matrix(generator& random, std::int64_t rows, std::int64_t columns, std::int64_t gap)
        : row_bytes(2 * (columns + gap)),
          memory(static_cast<std::size_t>(rows == 0 ? 0 : (rows - 1) * row_bytes + 2 * columns),
                 one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back) {
        fill_random(random, memory.data(), memory.size());
        if (one_in(random, 3)) return;
        for (std::size_t i = 0; i + 1 < memory.size(); i += 2) { // no NaN, few overflows
            const std::uint16_t bits = bf16(static_cast<float>(draw(random, -999, 999)) / 64);
            std::memcpy(memory.data() + i, &bits, sizeof bits);
        }
    }
    float at(std::int64_t row, std::int64_t column) const {
        std::uint16_t bits;
        std::memcpy(&bits, memory.data() + row * row_bytes + 2 * column, sizeof bits);
        return number(bits);
    }

    std::int64_t row_bytes;
    guarded_buffer memory;
};

// A random product of bf16 pairs for one panel.
struct product_case {
    std::int64_t rows, steps, queries, panel;
    bf16_matrix a, b; // b: pairs of each query
    guarded_buffer c, factor;
    bool accumulates, has_factor;

    product_case(generator& random, std::int64_t lanes, bool may_add = true)
        : rows(draw(random, 0, 70)), steps(draw(random, 0, 40)), queries(draw(random, 1, lanes)),
          panel(lanes), a(random, rows, 2 * steps, draw(random, 0, 9)),
          b(random, steps, 2 * lanes, 0),
          c(static_cast<std::size_t>(rows * panel) * sizeof(float), guarded_buffer::edge::back),
          factor(static_cast<std::size_t>(panel) * sizeof(float), guarded_buffer::edge::back),
          accumulates(may_add && one_in(random, 3)),
          has_factor(may_add && !accumulates && one_in(random, 2)) {
        for (std::int64_t i = 0; i < rows * panel; ++i) put(c, i, draw(random, -99, 99));
        for (std::int64_t q = 0; q < panel; ++q) put(factor, q, 1 << draw(random, 0, 4));
    }

    panel_product product() const {
        return {a.memory.data(),
                a.row_bytes,
                4,
                rows,
                steps,
                reinterpret_cast<const float*>(b.memory.data()),
                reinterpret_cast<float*>(c.data()),
                has_factor ? reinterpret_cast<const float*>(factor.data()) : nullptr,
                queries,
                accumulates};
    }

    float sum(std::int64_t row, std::int64_t query) const { return get(c, row * panel + query); }
    // The new sum's initial value.
    float first_sum(std::int64_t row, std::int64_t query) const {
        return accumulates ? sum(row, query) : 0;
    }
    // Adds the old sum times the factor, if there is a factor.
    float with_factor(float added, std::int64_t row, std::int64_t query) const {
        return has_factor ? sum(row, query) * get(factor, query) + added : added;
    }

    template <class Visit>
    void for_each_sum(const Visit& visit) const {
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t query = 0; query < queries; ++query) visit(row, query);
    }
    std::string text(std::int64_t row, std::int64_t query) const {
        return "row " + std::to_string(row) + ", query " + std::to_string(query) + " of " +
               std::to_string(rows) + 'x' + std::to_string(steps) + 'x' + std::to_string(queries) +
               ", accumulates " + std::to_string(accumulates) + ", factor " +
               std::to_string(has_factor);
    }

private:
    static void put(const guarded_buffer& to, std::int64_t i, std::int64_t value) {
        const auto as_float = static_cast<float>(value);
        std::memcpy(to.data() + 4 * i, &as_float, sizeof as_float);
    }
    static float get(const guarded_buffer& from, std::int64_t i) {
        float value;
        std::memcpy(&value, from.data() + 4 * i, sizeof value);
        return value;
    }
};

} // namespace maskwise::test
