#include "api/check_loop.hpp"
#include "api/run_measured.hpp"
#include "exec/run_select.hpp"
#include "exec/run_strings.hpp"
#include "plan/plan_data.hpp"
#include "schema/select_schema.hpp"

namespace maskwise {
namespace {

tensor_desc with_strides(const tensor_desc& desc) {
    if (desc.strides_bytes.empty() && !desc.extents.empty())
        return dense_desc(desc.type, desc.extents);
    return desc;
}

dims infer_extents(const select_schema& schema, const tensor_desc& cond, const tensor_desc& src_0,
                   const tensor_desc& src_1, data_type dst, auto_broadcast broadcast) {
    check_types(schema, cond.type, src_0.type, src_1.type, dst);
    return infer_dst(schema, broadcast, cond.extents, src_0.extents, src_1.extents);
}

void require_addresses(const select_desc& desc, const std::array<const void*, 4>& addresses) {
    const std::pair<const char*, const tensor_desc*> operands[] = {
        {"cond", &desc.cond}, {"src_0", &desc.src_0}, {"src_1", &desc.src_1}, {"dst", &desc.dst}};
    for (std::size_t i = 0; i < addresses.size(); ++i)
        if (addresses[i] == nullptr)
            throw invalid_argument(std::string("the address of ") + operands[i].first +
                                   " is null, its shape is " +
                                   to_string(operands[i].second->extents));
}

void run(const select_plan& plan, const void* cond, const void* src_0, const void* src_1, void* dst,
         const parallel_loop* loop) {
    if (plan.nest.elements == 0) return;
    if (cond == nullptr || src_0 == nullptr || src_1 == nullptr || dst == nullptr)
        require_addresses(plan.desc, {cond, src_0, src_1, dst});
    run_measured(plan, [&] {
        if (plan.desc.dst.type == data_type::string)
            run_strings(plan, cond, src_0, src_1, dst, loop);
        else
            run_select(plan, cond, src_0, src_1, dst, loop);
    });
}

} // namespace

std::string_view to_string(dialect form) {
    return schema_of(form).dialect;
}

tensor_desc infer_dst(dialect form, const tensor_desc& cond, const tensor_desc& src_0,
                      const tensor_desc& src_1, auto_broadcast broadcast) {
    return dense_desc(src_0.type,
                      infer_extents(schema_of(form), cond, src_0, src_1, src_0.type, broadcast));
}

plan compile(dialect form, const tensor_desc& cond, const tensor_desc& src_0,
             const tensor_desc& src_1, auto_broadcast broadcast) {
    return plan(make_select_plan({with_strides(cond), with_strides(src_0), with_strides(src_1),
                                  infer_dst(form, cond, src_0, src_1, broadcast)}));
}

plan compile(dialect form, const tensor_desc& cond, const tensor_desc& src_0,
             const tensor_desc& src_1, const tensor_desc& dst, auto_broadcast broadcast) {
    const select_schema& schema = schema_of(form);
    const dims inferred = infer_extents(schema, cond, src_0, src_1, dst.type, broadcast);
    if (dst.extents != inferred)
        throw invalid_shape(std::string(schema.dialect) + ": " + std::string(schema.output) +
                            " is " + to_string(dst.extents) + ", expected " + to_string(inferred));
    return plan(make_select_plan(
        {with_strides(cond), with_strides(src_0), with_strides(src_1), with_strides(dst)}));
}

plan::plan(std::shared_ptr<const select_plan> data) noexcept : data_(std::move(data)) {}

const tensor_desc& plan::dst() const noexcept {
    return data_->desc.dst;
}

void plan::execute(const void* cond, const void* src_0, const void* src_1, void* dst) const {
    run(*data_, cond, src_0, src_1, dst, nullptr);
}

void plan::execute(const void* cond, const void* src_0, const void* src_1, void* dst,
                   const parallel_loop& loop) const {
    check_loop("select", loop);
    run(*data_, cond, src_0, src_1, dst, &loop);
}

std::string_view version() noexcept {
    return MASKWISE_VERSION;
}

std::string_view instruction_set() {
    return to_string(active_isa());
}

} // namespace maskwise
