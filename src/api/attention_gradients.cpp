#include "maskwise/attention_gradients.hpp"

#include "attention/attention_checks.hpp"
#include "attention/row_spans.hpp"
#include "attention/run_attention.hpp"
#include "attention/run_gradients.hpp"
#include "exec/parts.hpp"

#include <algorithm>
#include <utility>

namespace maskwise {
namespace {

void require_gradient(const char* name, const tensor_desc& gradient, const void* address) {
    if (address != nullptr || gradient.type == data_type::undef ||
        std::ranges::count(gradient.extents, 0) > 0)
        return;
    throw argument_error(std::string("attention gradients: the address of ") + name + " is null");
}

void run(const gradients_plan& plan, const attention_gradients_operands& operands,
         const parallel_loop* loop) {
    const attention_gradients_desc& desc = plan.desc;
    require_addresses(desc.attention, operands.attention);
    require_gradient("dst_gradient", desc.dst_gradient, operands.dst_gradient);
    require_gradient("query_gradient", desc.query_gradient, operands.query_gradient);
    require_gradient("key_gradient", desc.key_gradient, operands.key_gradient);
    require_gradient("value_gradient", desc.value_gradient, operands.value_gradient);
    require_gradient("bias_gradient", desc.bias_gradient, operands.bias_gradient);
    require_gradient("sinks_gradient", desc.sinks_gradient, operands.sinks_gradient);
    require_rules(plan.attention->desc, operands.attention.rules);
    run_gradients(plan, operands, loop_for(*plan.attention, loop));
}

} // namespace

inline namespace v1 {

attention_gradients_plan compile(const attention_gradients_desc& desc) {
    return attention_gradients_plan(make_gradients_plan(desc, active_isa()));
}

attention_gradients_plan::attention_gradients_plan(
    std::shared_ptr<const gradients_plan> data) noexcept
    : data_(std::move(data)) {}

const attention_gradients_desc& attention_gradients_plan::desc() const noexcept {
    return data_->desc;
}

void attention_gradients_plan::execute(const attention_gradients_operands& operands) const {
    run(*data_, operands, nullptr);
}

void attention_gradients_plan::execute(const attention_gradients_operands& operands,
                                       const parallel_loop& loop) const {
    check_loop("attention gradients", loop);
    run(*data_, operands, &loop);
}

std::int64_t attention_gradients_plan::scratch_bytes(int threads) const {
    return maskwise::scratch_bytes(*data_, threads);
}

} // namespace v1
} // namespace maskwise
