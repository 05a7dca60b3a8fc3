#include "support/operations.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace maskwise::test {
namespace {

double larger(double a, double b) {
    return a > b ? a : b;
}

double smaller(double a, double b) {
    return a < b ? a : b;
}

struct definition {
    std::string_view name, specified;
    int inputs;
    double (*value)(double x, double y, double alpha, double beta);
};

constexpr definition definitions[] = {
#define MASKWISE_TEST_OPERATION(name, specified, inputs, value)                                    \
    {#name, specified, inputs,                                                                     \
     []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double alpha,       \
        [[maybe_unused]] double beta) -> double { return value; }},
#include "support/operations.inc"
#undef MASKWISE_TEST_OPERATION
};

} // namespace

double compute(operation kind, double x, double y, double alpha, double beta) {
    return definitions[static_cast<std::size_t>(kind)].value(x, y, alpha, beta);
}

int input_count(operation kind) {
    return definitions[static_cast<std::size_t>(kind)].inputs;
}

std::optional<operation> find_operation(std::string_view name) {
    const auto* const match =
        std::find_if(std::begin(definitions), std::end(definitions), [name](const auto& each) {
            return each.name == name || each.specified == name;
        });
    if (match == std::end(definitions)) return std::nullopt;
    return static_cast<operation>(match - definitions);
}

double soft_max(double* first, std::size_t count, std::size_t step, bool inf_as_zero) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < count; ++i) {
        const double value = first[i * step];
        largest = std::isnan(value) ? value : std::max(largest, value);
    }
    const bool is_zero = inf_as_zero && largest == -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        first[i * step] = is_zero ? 0 : std::exp(first[i * step] - largest);
        sum += first[i * step];
    }
    if (is_zero) return 0;
    for (std::size_t i = 0; i < count; ++i) first[i * step] /= sum;
    return largest + std::log(sum);
}

} // namespace maskwise::test
