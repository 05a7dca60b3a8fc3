#include "client/runner.hpp"

#include "client/driver_reference.hpp"
#include "compare/compare.hpp"
#include "driver/fill.hpp"
#include "driver/rule.hpp"
#include "input/case_reader.hpp"
#include "input/rewrite.hpp"
#include "model/infer_shapes.hpp"
#include "oracle/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace maskwise::bench {
namespace {

using clock = std::chrono::steady_clock;

double ms_since(clock::time_point start) {
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

// Thrown to end a case with a verdict.
struct decided {
    verdict state;
    std::string reason;
};

verdict verdict_of(const test::failed_call& failure) {
    if (failure.has_thrown) return verdict::aborted;
    if (failure.status == dnnl_invalid_arguments) return verdict::invalid_arguments;
    if (failure.status == dnnl_unimplemented) return verdict::unimplemented;
    return verdict::failed;
}

// Returns the verdict on a failed call. `expected` is the status that the case must end with, or
// empty.
decided judge(const test::failed_call& failure, const std::string& expected) {
    const std::string text = failure.has_thrown ? failure.what()
                                                : fmt::format("{} returned {}", failure.function,
                                                              status_name(failure.status));
    if (expected.empty()) return {verdict_of(failure), text};
    if (!failure.has_thrown && failure.status == find_status(expected))
        return {verdict::passed, ""};
    return {failure.has_thrown ? verdict::aborted : verdict::failed,
            fmt::format("expected {}, but {}", expected, text)};
}

bool holds_select(const graph& g, const program_step& step) {
    return std::any_of(step.op_ids.begin(), step.op_ids.end(), [&](std::size_t id) {
        return std::any_of(g.ops.begin(), g.ops.end(),
                           [id](const op& o) { return o.id == id && o.kind == "Select"; });
    });
}

std::string join_ids(const std::vector<std::size_t>& ids) {
    return fmt::format("{}", fmt::join(ids, ","));
}

// Returns a type of the partition for which this machine lacks instructions, or "".
std::string lacking_type(const graph& g, const program_step& step) {
    std::string lacking;
    for (const op& o : g.ops) {
        if (std::find(step.op_ids.begin(), step.op_ids.end(), o.id) == step.op_ids.end()) continue;
        for (const auto* ports : {&o.inputs, &o.outputs})
            for (const logical_tensor& t : *ports)
                if (machine_lacks(t.dtype)) lacking = info(t.dtype).name;
    }
    return lacking;
}

graph part_of(const graph& g, const program_step& step) {
    graph part;
    for (const op& o : g.ops)
        if (std::find(step.op_ids.begin(), step.op_ids.end(), o.id) != step.op_ids.end())
            part.ops.push_back(o);
    return part;
}

// Whether the case also runs with the inputs of oneDNN's driver. Fill `auto` omits this run if
// --mask is set or the graph only moves elements. Random bits test such a graph better.
bool fills_as_driver(const case_config& config, const graph& g) {
    if (config.fill != "auto") return config.fill == "driver";
    return config.mask == "auto" && !bits_only(g);
}

void add(const comparison& c, std::size_t id, const char* prefix, case_result& result) {
    result.errors += c.errors;
    result.total += c.total;
    result.allowance_used = std::max(result.allowance_used, c.used);
    if (c.errors == 0) return;
    result.wrong_tensors.push_back(id);
    if (result.state != verdict::passed) return;
    result.state = verdict::failed;
    result.reason = fmt::format("{}tensor {}: {}", prefix, id, c.first);
}

select_summary summarize_select(const op& o) {
    select_summary s;
    s.dtype = info(o.outputs.at(0).dtype).name;
    for (const logical_tensor* t :
         {&o.inputs.at(0), &o.inputs.at(1), &o.inputs.at(2), &o.outputs.at(0)}) {
        s.shapes.push_back(t->shape);
        s.strides.push_back(t->strides.empty() ? dense_strides(t->shape) : t->strides);
    }
    return s;
}

} // namespace

case_result runner::run(const case_config& config) {
    const auto start = clock::now();
    calls_ = {};
    timed_.reset();
    program_.reset();
    cold_cache_ = config.cold_cache;
    graph g = read_case(config.file);
    rewrite(g, config);
    if (verbose_ >= 7) fmt::print("{}\n", graph_text(g));
    known_ = with_known_shapes(g);
    case_result result;
    result.state = verdict::listed;
    if (!config.list_only) result = run_on_library(config, g);
    for (const op& o : known_.ops)
        if (o.kind == "Select" && o.inputs.size() == 3)
            result.selects.push_back(summarize_select(o));
    result.wall_ms = ms_since(start);
    return result;
}

case_result runner::run_on_library(const case_config& config, const graph& g) {
    case_result result;
    const auto end = [&](const decided& d) {
        result.state = d.state;
        result.reason = d.reason;
    };
    try {
        if (const std::string lacks = library_lacks(g); !lacks.empty())
            throw decided{verdict::skipped, lacks};
        program_ = std::make_unique<program>(g);
        judge_partitions(config, result);
        compile(config, result);
        if (!config.expect.empty() && config.expect != "success")
            throw decided{verdict::failed,
                          fmt::format("expected {}, but every call succeeded", config.expect)};
        check_owner(config);
        result.state = verdict::passed;
        if (config.correctness) check_values(config, result);
        if (config.performance && result.state == verdict::passed) measure(config, result);
    } catch (const decided& d) {
        end(d);
    } catch (const test::failed_call& failure) {
        end(judge(failure, config.expect));
    } catch (const input_error& error) {
        end({verdict::failed,
             fmt::format("the library accepted a case that the oracle refuses: {}", error.what())});
    } catch (const std::runtime_error& error) {
        end({verdict::failed, error.what()});
    }
    summarize_partitions(result);
    return result;
}

void runner::judge_partitions(const case_config& config, case_result& result) const {
    const auto& steps = program_->steps();
    for (const program_step& step : steps) {
        if (step.supported) continue;
        const std::string lacking = lacking_type(known_, step);
        const std::string unsupported =
            fmt::format("partition of op {} is not supported", join_ids(step.op_ids));
        if (!lacking.empty())
            throw decided{verdict::skipped,
                          fmt::format("{}: this machine has no {}", unsupported, lacking)};
        throw decided{verdict::unimplemented, unsupported};
    }
    const auto expected = static_cast<std::size_t>(config.expected_n_partitions);
    if (expected != 0 && steps.size() != expected)
        throw decided{verdict::failed,
                      fmt::format("expected {} partitions, got {}", expected, steps.size())};
    summarize_partitions(result);
}

void runner::compile(const case_config& config, case_result& result) {
    const auto start = clock::now();
    program_->compile(config.performance && !config.correctness);
    result.compile_ms = ms_since(start);
}

void runner::check_owner(const case_config& config) const {
    if (config.owner.empty()) return;
    const bool wanted = config.owner == "maskwise";
    const bool any_select = has_op(known_, "Select");
    for (const program_step& step : program_->steps())
        if ((!any_select || holds_select(known_, step)) && step.owned_by_maskwise != wanted)
            throw decided{verdict::failed,
                          fmt::format("partition of op {} is executed by {}", join_ids(step.op_ids),
                                      wanted ? "oneDNN" : "Maskwise")};
}

bool runner::maskwise_owns_selects() const {
    const auto& steps = program_->steps();
    return has_op(known_, "Select") && std::ranges::all_of(steps, [this](const program_step& step) {
               return step.owned_by_maskwise || !holds_select(known_, step);
           });
}

void runner::check_values(const case_config& config, case_result& result) {
    fill_policy policy;
    policy.mask = config.mask;
    const bool is_open = config.fill == "auto" || config.fill == "own";
    policy.any_true_byte = config.fill == "bits" || (is_open && maskwise_owns_selects());
    policy.any_bits = policy.any_true_byte && bits_only(known_);
    inputs_ = fill_inputs(known_, policy);
    if (config.fill != "driver") check_with(inputs_, config, result);
    if (!fills_as_driver(config, known_) || result.state != verdict::passed) return;
    const tensor_map inputs = driver::fill_inputs(known_, fill_inputs(known_, {}));
    case_result by_definition = result;
    const execution e = check_with(inputs, config, by_definition);
    // In a graph with 16-bit floats and 8-bit integers, only the driver's rule decides. The
    // driver's scores are large, so rounding to 16 bits changes quantized results by many units.
    if (!mixes_16_bits_and_integers(known_)) result = by_definition;
    if (result.state == verdict::passed)
        judge_as_driver(e, inputs, result);
    else
        result.reason = fmt::format("with the driver's inputs: {}", result.reason);
}

execution runner::check_with(const tensor_map& inputs, const case_config& config,
                             case_result& result) const {
    execution e(*program_, inputs, edge::back, config.in_place);
    e.run();
    e.wait();
    if (const std::string damage = e.damage(); !damage.empty())
        throw decided{verdict::failed, damage};
    if (const std::string kind = first_op_without_oracle(known_); !kind.empty())
        throw decided{verdict::mistrusted, fmt::format("no oracle for {}: not compared", kind)};
    compare_outputs(e, inputs, result);
    if (!config.in_place) check_moved_bits(e);
    return e;
}

void runner::compare_outputs(const execution& e, const tensor_map& inputs,
                             case_result& result) const {
    const std::vector<std::size_t> ids = e.outputs();
    const tensor_map expected = evaluate(known_, inputs, {ids.begin(), ids.end()});
    for (const std::size_t id : ids) {
        const tensor& want = expected.at(id);
        const logical_tensor& t = *find_tensor(known_, id);
        const bool moved = want.dtype == t.dtype && bits_only(known_);
        add(compare(want, e.value(id), tolerance_for(known_, t, moved)), id, "", result);
    }
}

// Compares each partition's outputs with a reference computed from the partition's actual inputs.
void runner::judge_as_driver(const execution& e, const tensor_map& inputs,
                             case_result& result) const {
    constexpr int rule_since = 8; // partitions of oneDNN before 3.8 round differently
    for (const program_step& step : program_->steps()) {
        if (!step.owned_by_maskwise && dnnl_version()->minor < rule_since) continue;
        const graph part = part_of(known_, step);
        tensor_map part_inputs;
        for (const std::size_t id : graph_inputs(part))
            part_inputs.emplace(id, inputs.count(id) > 0 ? inputs.at(id) : e.value(id));
        std::set<std::size_t> wanted;
        for (const auto& lt : step.outputs) wanted.insert(lt.id);
        const tensor_map reference = driver::reference_of(known_, part, part_inputs, wanted);
        for (const op& o : part.ops)
            for (std::size_t i = 0; i < o.outputs.size(); ++i)
                if (const std::size_t id = o.outputs[i].id; wanted.count(id) > 0)
                    add(driver::compare_as_driver(reference.at(id), e.value(id),
                                                  driver::rule_for(part, o, i)),
                        id, "by the driver's rule: ", result);
    }
}

// A partition that only moves elements must be bit-exact for its actual inputs, which may differ
// slightly from the oracle's.
void runner::check_moved_bits(const execution& e) const {
    for (const program_step& step : program_->steps()) {
        const graph part = part_of(known_, step);
        if (part.ops.size() == known_.ops.size() || !bits_only(part)) continue;
        tensor_map part_inputs;
        for (const std::size_t id : graph_inputs(part)) part_inputs.emplace(id, e.value(id));
        for (const auto& lt : step.outputs) {
            const tensor want = evaluate(part, part_inputs, {lt.id}).at(lt.id);
            tolerance exact;
            exact.exact = true;
            const comparison c = compare(want, e.value(lt.id), exact);
            if (c.errors > 0)
                throw decided{
                    verdict::failed,
                    fmt::format("tensor {} does not have the bits of its partition's inputs: {}",
                                lt.id, c.first)};
        }
    }
}

void runner::measure(const case_config& config, case_result& result) {
    if (inputs_.empty() || !config.correctness) {
        fill_policy policy;
        policy.mask = config.mask;
        inputs_ = fill_inputs(known_, policy);
    }
    timed_ = std::make_unique<execution>(*program_, inputs_, edge::front, config.in_place);
    inputs_.clear();
    calls_ = calls_of(*timed_);
    const double first_ms = warm_up(calls_);
    result.perf = summarize(
        take_samples(calls_, config.fix_times_per_prb, config.max_ms_per_prb, cold_cache_),
        timed_->bytes());
    result.perf->first_ms = first_ms;
}

std::vector<double> runner::time_again(int samples, double max_ms) {
    if (!calls_.run) return {};
    return take_samples(calls_, samples, max_ms, cold_cache_);
}

void runner::summarize_partitions(case_result& result) const {
    result.partitions.clear();
    if (!program_) return;
    for (const program_step& step : program_->steps()) {
        partition_summary& p = result.partitions.emplace_back();
        p.op_ids = step.op_ids;
        p.supported = step.supported;
        if (step.compiled.get()) p.owner = step.owned_by_maskwise ? "maskwise" : "onednn";
    }
}

} // namespace maskwise::bench
