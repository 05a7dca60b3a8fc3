#include "limit/mask.hpp"

#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>

namespace maskwise::bench {
namespace {

// Where an element of cond lies.
struct place {
    std::int64_t first, row, column;
    std::int64_t firsts, rows, columns;
    bool begins_matrix;
};

using rule = std::function<bool(const place&)>;

rule make_random(std::uint64_t seed, double probability) {
    const auto below = static_cast<std::uint64_t>(probability * 256);
    return [random = random_bits(seed), below, bits = std::uint64_t{0},
            left = 0](const place&) mutable {
        if (left == 0) {
            bits = random();
            left = 8;
        }
        --left;
        const std::uint64_t byte = bits & 0xff;
        bits >>= 8;
        return byte < below;
    };
}

rule make_padding(std::uint64_t seed) {
    return [random = random_bits(seed), length = std::int64_t{0}](const place& at) mutable {
        if (at.begins_matrix) length = random.draw(at.columns / 4, at.columns);
        return at.column < length;
    };
}

rule make_runs(std::uint64_t seed) {
    return
        [random = random_bits(seed), left = std::int64_t{0}, value = false](const place&) mutable {
            if (left == 0) {
                left = random.draw(500, 1000);
                value = !value;
            }
            --left;
            return value;
        };
}

rule make_rule(const bench_case& c) {
    const std::string& mask = c.mask;
    if (mask == "random") return make_random(c.seed, 0.5);
    if (mask.rfind("random:", 0) == 0) return make_random(c.seed, std::stod(mask.substr(7)));
    if (mask == "padding") return make_padding(c.seed);
    if (mask == "runs") return make_runs(c.seed);
    if (mask == "true") return [](const place&) { return true; };
    if (mask == "false") return [](const place&) { return false; };
    if (mask == "causal")
        return [](const place& at) { return at.column <= at.row + (at.columns - at.rows); };
    if (mask == "banded") return [](const place& at) { return std::abs(at.column - at.row) < 8; };
    if (mask == "one_row") return [](const place& at) { return at.first == at.firsts / 2; };
    throw std::invalid_argument("no mask '" + mask + "'");
}

} // namespace

void fill_mask(const bench_case& c, std::byte* cond) {
    const auto& extents = c.cond.extents;
    const auto& strides = c.cond.strides_elems;
    const std::size_t rank = extents.size();
    const rule is_true = make_rule(c);
    const std::int64_t columns = rank > 0 ? extents[rank - 1] : 1;
    const std::int64_t rows = rank > 1 ? extents[rank - 2] : 1;
    const std::int64_t count = element_count(c.cond);
    const std::int64_t each_first = rank > 0 && extents[0] > 0 ? count / extents[0] : 1;
    std::vector<std::int64_t> index(rank, 0);
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t in_matrix = i % (rows * columns);
        cond[at] = static_cast<std::byte>(
            is_true({i / each_first, in_matrix / columns, in_matrix % columns,
                     rank > 0 ? extents[0] : 1, rows, columns, in_matrix == 0}));
        for (std::size_t d = rank; d-- > 0;) {
            at += strides[d];
            if (++index[d] < extents[d]) break;
            at -= strides[d] * extents[d];
            index[d] = 0;
        }
    }
}

} // namespace maskwise::bench
