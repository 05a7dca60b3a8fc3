// Fuzzes attention gradients on each instruction set of this machine. Differentiable cases are
// compared with central differences in double precision. Other cases must throw `error` or write
// only to the gradients. Descriptions with wrong values are only compiled.

#include "unit/attention/attention_targets.hpp"
#include "unit/attention/gradients_case.hpp"

#include "base/error.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace maskwise;
using namespace maskwise::test;

void compile_spoiled(generator& random, attention_gradients_desc desc, const kernel_table& target) {
    tensor_desc* const gradients[] = {&desc.dst_gradient,   &desc.query_gradient,
                                      &desc.key_gradient,   &desc.value_gradient,
                                      &desc.bias_gradient,  &desc.sinks_gradient,
                                      &desc.attention.bias, &desc.attention.statistics};
    tensor_desc& spoiled = *gradients[draw(random, 0, std::ssize(gradients) - 1)];
    dims& list = one_in(random, 2) ? spoiled.extents : spoiled.strides_bytes;
    constexpr std::int64_t numbers[] = {-1, 0, 1, 3, 1LL << 32, INT64_MAX, INT64_MIN};
    const std::int64_t number = numbers[draw(random, 0, std::ssize(numbers) - 1)];
    if (one_in(random, 6)) list.push_back(number);
    if (!list.empty()) list[static_cast<int>(draw(random, 0, list.rank() - 1))] = number;
    try {
        scratch_bytes(*make_gradients_plan(desc, target), 3);
    } catch (const error&) {
    }
}

// Runs a case that may lack derivatives, because of NaN, infinity, or a fill so large that f32
// loses the scores.
std::string run_any(generator& random, const kernel_table& target) {
    const gradients_case problem = with_gradients(random, make_attention_case(random, true));
    try {
        return run_checked(random, problem, target);
    } catch (const error&) {
        return {};
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    generator random(std::span(data, size));
    gradients_case problem = make_gradients_case(random);
    for (const kernel_table* target : attention_targets()) {
        std::string wrong = check_gradients(random, problem, *target);
        if (wrong.empty() && one_in(random, 4)) wrong = run_any(random, *target);
        if (!wrong.empty()) {
            std::fprintf(stderr, "%s %s\n", name_of(target).c_str(), wrong.c_str());
            std::abort();
        }
        if (one_in(random, 4)) compile_spoiled(random, problem.desc(), *target);
    }
    return 0;
}
