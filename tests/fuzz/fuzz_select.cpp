// Runs random Selects, each on a random instruction set of this machine. Accepted Selects must
// match the reference. Only Selects that spoil() changed may be refused, by an `error`.

#include "support/case_generator.hpp"

#include "base/error.hpp"
#include "unit/exec/checked_run.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace maskwise;
using namespace maskwise::test;

std::int64_t odd_number(generator& random) {
    static constexpr std::int64_t odd[] = {
        -1, 0, 1, INT64_MIN, INT64_MAX, INT64_MAX / 2, 1LL << 32, 1LL << 62, 3, 64};
    return odd[draw(random, 0, std::ssize(odd) - 1)];
}

// Changes a few numbers. Some changed cases are still valid. dst gets a separate buffer, because in
// place, dst needs the source's layout.
void spoil(generator& random, select_case& layouts) {
    layouts.in_place = -1;
    for (view* operand : {&layouts.cond, &layouts.src_0, &layouts.src_1, &layouts.dst}) {
        if (operand->extents.empty() || !one_in(random, 3)) continue;
        const auto dimension =
            static_cast<std::size_t>(draw(random, 0, std::ssize(operand->extents) - 1));
        auto& list = one_in(random, 2) ? operand->extents : operand->strides_bytes;
        list[dimension] = one_in(random, 2) ? odd_number(random) : draw(random, -4, 200);
    }
}

// Whether each operand has at most 16 MiB.
bool fits_memory(const select_case& layouts) {
    constexpr std::int64_t most_bytes = 1 << 24;
    for (const view* operand : {&layouts.cond, &layouts.src_0, &layouts.src_1, &layouts.dst}) {
        std::int64_t span = layouts.width_bytes, count = 1;
        for (std::size_t d = 0; d < operand->extents.size(); ++d) {
            const std::int64_t extent = operand->extents[d], stride = operand->strides_bytes[d];
            if (extent <= 0) break; // empty, or refused
            if (extent > most_bytes || stride > most_bytes || stride < -most_bytes) return false;
            span += (extent - 1) * std::abs(stride);
            count *= extent;
            if (span > most_bytes || count > most_bytes) return false;
        }
    }
    return true;
}

void check(generator& random) {
    const auto targets = supported_isas(native_cpu());
    const isa target = targets[static_cast<std::size_t>(draw(random, 0, std::ssize(targets) - 1))];
    select_case layouts = make_case(random, one_in(random, 16) ? 100000 : 2000);
    const bool spoiled = one_in(random, 4);
    if (spoiled) spoil(random, layouts);
    std::string wrong;
    try {
        if (fits_memory(layouts))
            wrong = checked_run(random, layouts, target);
        else
            make_select_plan(describe(layouts));
    } catch (const error& refusal) {
        if (!spoiled) wrong = refusal.what() + to_string(layouts);
    }
    if (wrong.empty()) return;
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    generator random(std::span(data, size));
    check(random);
    return 0;
}
