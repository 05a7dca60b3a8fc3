#include "base/verbose.hpp"
#include "exec/parts.hpp"
#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"
#include "schema/select_schema.hpp"

namespace maskwise {
namespace {

// Completes desc.dst: type and extents if dst is undef, and strides if dst has no strides.
void complete_dst(dialect form, select_desc& desc, auto_broadcast broadcast) {
    const select_schema& schema = schema_of(form);
    const bool has_dst = desc.dst.type != data_type::undef;
    if (!has_dst) desc.dst = {desc.src_0.type, {}};
    check_types(schema, desc.cond.type, desc.src_0.type, desc.src_1.type, desc.dst.type);
    dims inferred =
        infer_dst(schema, broadcast, desc.cond.extents, desc.src_0.extents, desc.src_1.extents);
    if (has_dst && desc.dst.extents != inferred)
        throw shape_error(std::string(schema.dialect) + ": " + std::string(schema.output) + " is " +
                          to_string(desc.dst.extents) + ", expected " + to_string(inferred));
    if (!has_dst) desc.dst.extents = std::move(inferred);
    fill_in_strides(desc.dst);
}

void require_addresses(const select_desc& desc, const per_operand<const void*>& addresses) {
    for (const std::size_t o : every_operand)
        if (addresses[o] == nullptr)
            throw argument_error(std::string("the address of ") + operand_names[o] +
                                 " is null, its shape is " +
                                 to_string(operands_of(desc)[o]->extents));
}

void run(const select_plan& plan, const select_inputs& inputs, void* dst,
         const parallel_loop* loop) {
    if (plan.nest.elements == 0) return;
    if (inputs.cond == nullptr || inputs.src_0 == nullptr || inputs.src_1 == nullptr ||
        dst == nullptr)
        require_addresses(plan.desc, {inputs.cond, inputs.src_0, inputs.src_1, dst});
    run_measured(plan,
                 [&] { run_select(plan, inputs.cond, inputs.src_0, inputs.src_1, dst, loop); });
}

} // namespace

inline namespace v1 {

std::string_view to_string(dialect form) {
    return schema_of(form).dialect;
}

tensor_desc infer_dst(dialect form, select_desc desc, auto_broadcast broadcast) {
    complete_dst(form, desc, broadcast);
    return std::move(desc.dst);
}

plan compile(dialect form, select_desc desc, auto_broadcast broadcast) {
    complete_dst(form, desc, broadcast);
    for (tensor_desc* input : {&desc.cond, &desc.src_0, &desc.src_1}) fill_in_strides(*input);
    return plan(make_select_plan(desc));
}

plan::plan(std::shared_ptr<const select_plan> data) noexcept : data_(std::move(data)) {}

const tensor_desc& plan::dst() const noexcept {
    return data_->desc.dst;
}

void plan::execute(const select_inputs& inputs, void* dst) const {
    run(*data_, inputs, dst, nullptr);
}

void plan::execute(const select_inputs& inputs, void* dst, const parallel_loop& loop) const {
    check_loop("select", loop);
    run(*data_, inputs, dst, &loop);
}

std::string_view version() noexcept {
    return MASKWISE_VERSION;
}

std::string_view instruction_set() {
    return to_string(active_isa());
}

} // namespace v1
} // namespace maskwise
