// Runs random attention cases on each instruction set of this machine, with chunks in random order.
// Results must agree with double precision, and no other memory may change. Changed descriptions
// are only compiled; a refusal must be an `error`.

#include "support/attention_case.hpp"
#include "unit/attention/attention_targets.hpp"

#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace {

using namespace maskwise;
using namespace maskwise::test;

template <class T, std::size_t Count>
T one_of(generator& random, const T (&values)[Count]) {
    return values[draw(random, 0, Count - 1)];
}

// Runs chunks in random order, as threads may, but on this thread, so that results are
// reproducible.
parallel_loop shuffled_loop(generator& random, int threads) {
    return {threads, [&random](std::int64_t count, const auto& body) {
                std::vector<std::int64_t> order(static_cast<std::size_t>(count));
                std::iota(order.begin(), order.end(), std::int64_t{0});
                std::shuffle(order.begin(), order.end(), random);
                for (const std::int64_t i : order) body(i);
            }};
}

// Returns a description of the fault, or "".
std::string run(generator& random, const attention_case& problem, const wanted_attention& wanted,
                const kernel_table* target) {
    const input_memory inputs = copy_inputs(problem);
    for (const auto* output : {&problem.dst, &problem.statistics})
        fill_random(random, output->memory.data(), output->memory.size());
    const output_memory before = copy_outputs(problem);
    const auto plan = make_tile_plan(problem.desc, *target);
    const int threads = static_cast<int>(draw(random, 0, 6));
    const parallel_loop loop = shuffled_loop(random, threads);
    run_attention(*plan, problem.operands(), threads == 0 ? nullptr : &loop);
    std::string wrong = compare(problem, wanted, before);
    if (copy_inputs(problem) != inputs) wrong += " an input was written";
    if (wrong.empty()) return wrong;
    return wrong + " with " + std::to_string(threads) + " threads on " + name_of(target) + ": " +
           to_string(problem);
}

// Changes a few values. Some changed descriptions are still valid.
void spoil(generator& random, attention_desc& desc) {
    for (tensor_desc* operand : {&desc.query, &desc.key, &desc.value, &desc.cond, &desc.bias,
                                 &desc.dst, &desc.statistics}) {
        if (!one_in(random, 4)) continue;
        if (one_in(random, 4))
            operand->type = one_of(random, {data_type::undef, data_type::f32, data_type::boolean,
                                            data_type::f64, data_type::bf16, data_type::i8});
        dims& list = one_in(random, 2) ? operand->extents : operand->strides_bytes;
        const std::int64_t number =
            one_of<std::int64_t>(random, {-1, 0, 1, 2, 3, 64, 1LL << 32, 1LL << 62, INT64_MAX / 2,
                                          INT64_MAX, INT64_MIN});
        if (one_in(random, 6)) list.push_back(number);
        if (!list.empty()) list[static_cast<int>(draw(random, 0, list.rank() - 1))] = number;
    }
    if (one_in(random, 4)) desc.grouped_queries = !desc.grouped_queries;
}

// Only compiles, because the case's memory does not fit the changed description.
void compile_spoiled(generator& random, attention_desc desc, const kernel_table* target) {
    spoil(random, desc);
    try {
        const auto plan = make_tile_plan(desc, *target);
        scratch_bytes(*plan, static_cast<int>(draw(random, 1, 100)));
        to_string(*plan) + explain(*plan);
    } catch (const error&) {
    }
}

void check(generator& random) {
    const attention_case problem = make_attention_case(random, !one_in(random, 64));
    const wanted_attention wanted = expected(problem);
    for (const kernel_table* target : attention_targets()) {
        if (one_in(random, 16)) compile_spoiled(random, problem.desc, target);
        const std::string wrong = run(random, problem, wanted, target);
        if (wrong.empty()) continue;
        std::fprintf(stderr, "%s\n", wrong.c_str());
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    generator random(std::span(data, size));
    check(random);
    return 0;
}
