#include "maskwise/attention.hpp"

#include "attention/attention_checks.hpp"
#include "attention/cache_pages.hpp"
#include "attention/run_attention.hpp"
#include "attention/tile_plan.hpp"
#include "base/verbose.hpp"
#include "exec/parts.hpp"

namespace maskwise {
namespace {

void check(const tile_plan& plan, const attention_operands& operands) {
    require_addresses(plan.desc, operands);
    require_rules(plan.desc, operands.rules);
    require_pages(plan, operands);
}

void run(const tile_plan& plan, const attention_operands& operands, const parallel_loop* loop) {
    check(plan, operands);
    run_measured(plan, [&] { run_attention(plan, operands, loop_for(plan, loop)); });
}

} // namespace

inline namespace v1 {

tensor_desc infer_dst(const attention_desc& desc) {
    return checked_attention(desc).dst;
}

attention_plan compile(const attention_desc& desc) {
    return attention_plan(make_tile_plan(desc, active_isa()));
}

attention_plan::attention_plan(std::shared_ptr<const tile_plan> data) noexcept
    : data_(std::move(data)) {}

const tensor_desc& attention_plan::dst() const noexcept {
    return data_->desc.dst;
}

void attention_plan::execute(const attention_operands& operands) const {
    run(*data_, operands, nullptr);
}

void attention_plan::execute(const attention_operands& operands, const parallel_loop& loop) const {
    check_loop("attention", loop);
    run(*data_, operands, &loop);
}

tile_counts attention_plan::count_tiles(const attention_operands& operands) const {
    std::byte not_written{};
    attention_operands with_outputs = operands;
    with_outputs.dst = with_outputs.statistics = &not_written;
    check(*data_, with_outputs);
    return maskwise::count_tiles(*data_, operands);
}

std::int64_t attention_plan::scratch_bytes(int threads) const noexcept {
    return maskwise::scratch_bytes(*data_, threads);
}

std::string to_string(const attention_plan& plan) {
    return to_string(*plan.data_);
}

std::string explain(const attention_plan& plan) {
    return explain(*plan.data_);
}

} // namespace v1
} // namespace maskwise
