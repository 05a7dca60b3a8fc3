#include "dialect/dialect_runner.hpp"

#include "client/timing.hpp"
#include "dialect/dialect_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <string>

namespace maskwise::bench {
namespace {

using clock = std::chrono::steady_clock;

// The four operands of one Select in memory, and what a timed call is.
class dialect_execution {
public:
    dialect_execution(const dialect_case& c, const dialect_operand& dst, const maskwise::plan& plan,
                      edge where, const std::string& mask)
        : plan_(plan), cond_(c.inputs[0], where, 1), src_0_(c.inputs[1], where, 2),
          src_1_(c.inputs[2], where, 3), dst_(dst, where, 4) {
        cond_.fill_mask(mask, 5);
    }

    void run() const { plan_.execute(cond_.first(), src_0_.first(), src_1_.first(), dst_.first()); }
    void wait() const {}
    void evict() const {
        for (const dialect_data* data : {&cond_, &src_0_, &src_1_, &dst_})
            drop_from_caches(data->buffer().bytes());
    }
    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const dialect_data* data : {&cond_, &src_0_, &src_1_, &dst_})
            sum += data->buffer().bytes().size();
        return sum;
    }

    const dialect_data& dst() const { return dst_; }
    const dialect_data& taken(const dims& index) const {
        return *cond_.at(index) != std::byte{0} ? src_0_ : src_1_;
    }
    bool intact() const {
        return cond_.buffer().intact() && src_0_.buffer().intact() && src_1_.buffer().intact() &&
               dst_.buffer().intact();
    }

private:
    maskwise::plan plan_;
    dialect_data cond_, src_0_, src_1_, dst_;
};

bool is_right(const dialect_execution& e, const dims& index) {
    const std::byte* got = e.dst().at(index);
    const std::byte* want = e.taken(index).at(index);
    if (!e.dst().holds_strings()) return std::memcmp(got, want, e.dst().width()) == 0;
    return *reinterpret_cast<const std::string*>(got) ==
           *reinterpret_cast<const std::string*>(want);
}

void compare_elements(const dialect_execution& e, const dims& shape, case_result& result) {
    result.total = static_cast<std::size_t>(element_count(shape));
    if (result.total == 0) return;
    dims index(shape.size(), 0);
    do {
        if (is_right(e, index)) continue;
        if (result.errors++ == 0) result.reason = fmt::format("dst is wrong at {}", index);
    } while (test::advance(index, shape));
}

// Bytes of dst's buffer that no element has are as they were: those of another with the same seed.
bool gaps_are_untouched(const dialect_execution& e, const dialect_operand& dst) {
    if (e.dst().holds_strings() || element_count(dst.shape) == 0) return true;
    const dialect_data before(dst, edge::front, 4);
    dims index(dst.shape.size(), 0);
    do std::memcpy(before.at(index), e.dst().at(index), e.dst().width());
    while (test::advance(index, dst.shape));
    return std::ranges::equal(before.buffer().bytes(), e.dst().buffer().bytes());
}

void check_values(const dialect_case& c, const dialect_operand& dst, const maskwise::plan& plan,
                  const case_config& config, case_result& result) {
    const dialect_execution e(c, dst, plan, edge::back, config.mask);
    e.run();
    compare_elements(e, dst.shape, result);
    if (result.errors == 0 && !e.intact())
        result.reason = "bytes in front of a buffer were written";
    if (result.errors == 0 && !gaps_are_untouched(e, dst))
        result.reason = "bytes between dst's elements were written";
    result.state = result.reason.empty() ? verdict::passed : verdict::failed;
}

maskwise::plan compile(const dialect_case& c) {
    const auto cond = describe(c.inputs[0]), src_0 = describe(c.inputs[1]),
               src_1 = describe(c.inputs[2]);
    if (!c.dst) return maskwise::compile(c.form, cond, src_0, src_1, c.broadcast);
    return maskwise::compile(c.form, cond, src_0, src_1, describe(*c.dst), c.broadcast);
}

dialect_operand dst_of(const maskwise::plan& plan) {
    const maskwise::tensor_desc& desc = plan.dst();
    const auto width = static_cast<std::int64_t>(maskwise::width_bytes(desc.type));
    dialect_operand dst{desc.type, {desc.extents.begin(), desc.extents.end()}, {}};
    for (const std::int64_t stride : desc.strides_bytes) dst.strides.push_back(stride / width);
    return dst;
}

case_result refused(const case_config& config, const char* status, const std::string& text) {
    case_result result;
    if (config.expect == status)
        result.state = verdict::passed;
    else if (config.expect.empty() && std::string(status) == "invalid_arguments")
        result.state = verdict::invalid_arguments;
    if (result.state != verdict::passed) result.reason = text;
    return result;
}

case_result run_plan(const dialect_case& c, const maskwise::plan& plan, const case_config& config) {
    case_result result;
    const dialect_operand dst = dst_of(plan);
    const auto wanted = expected_shape(c);
    if (!config.expect.empty() && config.expect != "success") {
        result.reason = fmt::format("expected {}, but every call succeeded", config.expect);
    } else if (wanted != dst.shape) {
        result.reason = fmt::format("dst is {}, expected {}", to_text(dst.shape),
                                    wanted ? to_text(*wanted) : "a refusal");
    } else {
        result.state = verdict::passed;
        if (config.correctness) check_values(c, dst, plan, config, result);
    }
    if (!config.performance || result.state != verdict::passed) return result;
    dialect_execution timed(c, dst, plan, edge::front, config.mask);
    warm_up(timed);
    result.perf = summarize(
        take_samples(timed, config.fix_times_per_prb, config.max_ms_per_prb, config.cold_cache),
        timed.bytes());
    return result;
}

case_result compile_and_run(const case_config& config, const dialect_case& c) {
    try {
        return run_plan(c, compile(c), config);
    } catch (const maskwise::invalid_shape& refusal) {
        return refused(config, "invalid_shape", refusal.what());
    } catch (const maskwise::invalid_argument& refusal) {
        return refused(config, "invalid_arguments", refusal.what());
    }
}

} // namespace

case_result run_dialect(const case_config& config) {
    const auto start = clock::now();
    const dialect_case c = read_dialect_case(config);
    case_result result;
    result.state = verdict::listed;
    if (!config.list_only) result = compile_and_run(config, c);
    result.wall_ms = std::chrono::duration<double, std::milli>(clock::now() - start).count();
    return result;
}

} // namespace maskwise::bench
