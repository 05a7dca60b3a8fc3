#include "maskwise/attention.hpp"

#include "api/check_loop.hpp"
#include "api/run_measured.hpp"
#include "attention/attention_plan.hpp"
#include "attention/run_attention.hpp"

namespace maskwise {
namespace {

void require_address(const char* name, const tensor_desc& operand, const void* address) {
    if (operand.type == data_type::undef || address != nullptr) return;
    const dims& extents = operand.extents;
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
    throw invalid_argument(std::string("attention: the address of ") + name +
                           " is null, its shape is " + to_string(extents));
}

void check_addresses(const attention_desc& desc, const attention_operands& at) {
    require_address("query", desc.query, at.query);
    require_address("key", desc.key, at.key);
    require_address("value", desc.value, at.value);
    require_address("cond", desc.cond, at.cond);
    require_address("bias", desc.bias, at.bias);
    require_address("dst", desc.dst, at.dst);
    require_address("statistics", desc.statistics, at.statistics);
}

void run(const attention_data& plan, const attention_operands& at, const parallel_loop* loop) {
    check_addresses(plan.desc, at);
    run_measured(plan, [&] { run_attention(plan, at, loop); });
}

} // namespace

attention_plan compile(const attention_desc& desc) {
    return attention_plan(make_attention_plan(desc, active_isa()));
}

attention_plan::attention_plan(std::shared_ptr<const attention_data> data) noexcept
    : data_(std::move(data)) {}

const tensor_desc& attention_plan::dst() const noexcept {
    return data_->desc.dst;
}

void attention_plan::execute(const attention_operands& at) const {
    run(*data_, at, nullptr);
}

void attention_plan::execute(const attention_operands& at, const parallel_loop& loop) const {
    check_loop("attention", loop);
    run(*data_, at, &loop);
}

std::int64_t attention_plan::scratch_bytes(int threads) const noexcept {
    return maskwise::scratch_bytes(*data_, threads);
}

std::string to_string(const attention_plan& of) {
    return to_string(*of.data_);
}

std::string explain(const attention_plan& of) {
    return explain(*of.data_);
}

} // namespace maskwise
