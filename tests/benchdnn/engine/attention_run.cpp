#include "engine/attention_run.hpp"

#include "engine/attention_input.hpp"
#include "model/graph.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <new>

namespace maskwise::bench {
namespace {

using clock = std::chrono::steady_clock;
using edge = test::guarded_buffer::edge;

double ms_since(clock::time_point start) {
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

// By the name of oneDNN's status for the same.
void judge(case_result& result, const case_config& config, verdict otherwise, const char* status,
           const std::string& text) {
    result.state = config.expect.empty() ? otherwise : verdict::failed;
    if (config.expect == status) {
        result.state = verdict::passed;
        return;
    }
    const std::string answer = fmt::format("compile answered {}: {}", status, text);
    result.reason =
        config.expect.empty() ? answer : fmt::format("expected {}, but {}", config.expect, answer);
}

void check(const attention_plan& plan, const case_config& config, const attention_desc& desc,
           case_result& result) {
    const test::attention_case what = make_attention(config, desc, edge::back);
    const test::input_memory inputs = test::copy_inputs(what);
    const test::output_memory before = test::copy_outputs(what);
    plan.execute(what.operands());
    const test::wanted_attention wanted = test::expected(what);
    result.total = wanted.dst.size() + wanted.statistics.size();
    result.reason = test::compare(what, wanted, before);
    if (test::copy_inputs(what) != inputs) result.reason += " an input was written";
    if (!result.reason.empty()) result.state = verdict::failed;
}

void measure(const attention_plan& plan, const case_config& config, const attention_desc& desc,
             timed_calls& timed, case_result& result) {
    const auto what =
        std::make_shared<test::attention_case>(make_attention(config, desc, edge::front));
    std::vector<std::span<const std::byte>> memory;
    std::size_t bytes = 0;
    for (const auto* tensor : {&what->query, &what->key, &what->value, &what->cond, &what->bias,
                               &what->dst, &what->statistics}) {
        memory.emplace_back(tensor->memory.bytes());
        bytes += tensor->memory.size();
    }
    timed.run = [plan, what] { plan.execute(what->operands()); };
    timed.wait = [] {};
    timed.evict = [memory] {
        for (const auto& one : memory) drop_from_caches(one);
    };
    warm_up(timed);
    result.perf = summarize(
        take_samples(timed, config.fix_times_per_prb, config.max_ms_per_prb, config.cold_cache),
        bytes);
}

void run(const case_config& config, const attention_desc& desc, int verbose, timed_calls& timed,
         case_result& result) {
    const auto start = clock::now();
    const attention_plan plan = compile(desc);
    result.compile_ms = ms_since(start);
    if (verbose >= 3) fmt::print("{}\n", explain(plan));
    result.state = verdict::failed;
    if (!config.expect.empty() && config.expect != "success") {
        result.reason = fmt::format("expected {}, but it was compiled", config.expect);
    } else if (plan.dst().extents != desc.dst.extents) {
        result.reason = fmt::format("dst is {}", maskwise::to_string(plan.dst().extents));
    } else {
        result.state = verdict::passed;
        if (config.correctness) check(plan, config, desc, result);
        if (config.performance && result.state == verdict::passed)
            measure(plan, config, desc, timed, result);
    }
}

} // namespace

case_result run_attention_case(const case_config& config, int verbose, timed_calls& timed) {
    const auto start = clock::now();
    const attention_desc desc = describe_attention(config);
    case_result result;
    result.state = verdict::listed;
    try {
        if (!config.list_only) run(config, desc, verbose, timed, result);
    } catch (const invalid_shape& refusal) {
        judge(result, config, verdict::failed, "invalid_shape", refusal.what());
    } catch (const invalid_argument& refusal) {
        judge(result, config, verdict::invalid_arguments, "invalid_arguments", refusal.what());
    } catch (const std::bad_alloc&) {
        judge(result, config, verdict::failed, "out_of_memory", "out of memory");
    }
    result.wall_ms = ms_since(start);
    return result;
}

} // namespace maskwise::bench
