#include "data/mask.hpp"

#include "support/case_generator.hpp"

#include <algorithm>

namespace maskwise::bench {
namespace {

struct matrix_view {
    std::int64_t outer, rows, columns;
};

matrix_view as_matrices(const dims& shape) {
    const std::int64_t columns = shape.empty() ? 1 : shape.back();
    const std::int64_t rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
    const std::int64_t count = test::count_of(shape);
    return {count == 0 ? 0 : count / (rows * columns), rows, columns};
}

// Calls start() before each matrix and value(row, column) for each of its elements, in order.
template <typename Start, typename Value>
void fill_matrices(const dims& shape, std::byte* bytes, Start start, Value value) {
    const matrix_view m = as_matrices(shape);
    for (std::int64_t i = 0; i < m.outer; ++i) {
        start();
        for (std::int64_t r = 0; r < m.rows; ++r)
            for (std::int64_t c = 0; c < m.columns; ++c)
                *bytes++ = value(r, c) ? std::byte{1} : std::byte{0};
    }
}

void fill_runs(tensor& mask, test::generator& random) {
    bool value = test::one_in(random, 2);
    std::int64_t remaining = 0;
    for (std::byte& b : mask.bytes) {
        if (remaining == 0) {
            value = !value;
            remaining = test::draw(random, 1, 1000);
        }
        b = value ? std::byte{1} : std::byte{0};
        --remaining;
    }
}

void vary_true_bytes(tensor& mask, test::generator& random) {
    for (std::byte& b : mask.bytes)
        if (b != std::byte{0}) b = static_cast<std::byte>(test::draw(random, 1, 255));
}

} // namespace

tensor make_mask(const std::string& kind, const dims& shape, bool any_true_byte,
                 std::uint64_t seed) {
    tensor mask(data_type::boolean, shape);
    test::generator random(seed);
    std::byte* bytes = mask.bytes.data();
    if (kind == "random") {
        for (std::byte& b : mask.bytes) b = static_cast<std::byte>(random() >> 63);
    } else if (kind == "causal") {
        const matrix_view m = as_matrices(shape);
        fill_matrices(
            shape, bytes, [] {},
            [past = m.columns - m.rows](auto r, auto c) { return c <= r + past; });
    } else if (kind == "padding") {
        const auto columns = std::max<std::int64_t>(as_matrices(shape).columns, 1);
        std::int64_t length = 0;
        fill_matrices(
            shape, bytes, [&] { length = test::draw(random, 1, columns); },
            [&](auto, auto c) { return c < length; });
    } else if (kind == "ones") {
        std::ranges::fill(mask.bytes, std::byte{1});
    } else if (kind == "runs") {
        fill_runs(mask, random);
    } else if (kind != "zeros") {
        throw input_error("unknown mask '" + kind + "'");
    }
    if (any_true_byte) vary_true_bytes(mask, random);
    return mask;
}

} // namespace maskwise::bench
