#include "attention_operator.hpp"

#include "group_query_attention.hpp"
#include "multi_head_attention.hpp"
#include "onnx_attention.hpp"
#include "provider.hpp"
#include "registry.hpp"

#include <array>
#include <memory>
#include <utility>

namespace maskwise::ort {
namespace {

using begin_call = attention_work (*)(const runtime&, const call&, const attention_settings&,
                                      const parallel_loop&);

class attention_kernel : public OrtKernelImpl {
public:
    attention_kernel(const runtime& with, begin_call begin, attention_settings settings,
                     std::shared_ptr<session_facts> session)
        : OrtKernelImpl{api_version, 0, compute, release, nullptr, nullptr}, with_(with),
          begin_(begin), settings_(settings), session_(std::move(session)) {}

private:
    static attention_kernel& self(OrtKernelImpl* kernel) {
        return *static_cast<attention_kernel*>(kernel);
    }
    static OrtStatus* compute(OrtKernelImpl* kernel, OrtKernelContext* context) noexcept {
        return guarded(self(kernel).with_, [&] {
            self(kernel).run({self(kernel).with_, context});
        });
    }
    static void release(OrtKernelImpl* kernel) noexcept { delete &self(kernel); }

    void run(const call& at) {
        const parallel_loop loop = at.loop(session_->threads);
        ort::run(begin_(with_, at, settings_, loop), plans_, session_->scratch, loop);
    }

    const runtime& with_;
    const begin_call begin_;
    const attention_settings settings_;
    const std::shared_ptr<session_facts> session_;
    recent_plans plans_;
};

std::shared_ptr<session_facts> session_of(const runtime& with, const OrtKernelInfo* info) {
    const OrtEp* found = nullptr;
    check(with.KernelInfo_GetEp(info, &found));
    return static_cast<const provider*>(found)->session();
}

// T1, T2 and U are the names that ONNX's definition gives to the types of queries and keys, of
// values, and of the mask.
void configure_onnx(const runtime& with, OrtKernelDefBuilder* builder) {
    constexpr std::array types{data_type::f32, data_type::f16};
    constexpr std::array masks{data_type::f32, data_type::f16, data_type::boolean};
    constrain_type(with, builder, "T1", types);
    constrain_type(with, builder, "T2", types);
    constrain_type(with, builder, "U", masks);
}

void configure_own(const runtime& with, OrtKernelDefBuilder* builder) {
    constrain_type(with, builder, "T", std::array{data_type::f32});
    constrain_type(with, builder, "M", std::array{data_type::i32});
}

template <begin_call begin, auto settings_of>
OrtStatus* create(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
    const auto& with = *static_cast<const runtime*>(state);
    return guarded(with, [&] {
        *kernel = new attention_kernel(with, begin, settings_of(kernel_attributes{with, info}),
                                       session_of(with, info));
    });
}

} // namespace

void add_attention_kernels(const runtime& with, OrtKernelRegistry* to) {
    constexpr auto onnx = create<begin_onnx_attention, settings_of_onnx<kernel_attributes>>;
    constexpr auto multi_head =
        create<begin_multi_head_attention, settings_of_multi_head<kernel_attributes>>;
    constexpr auto group_query =
        create<begin_group_query_attention, settings_of_group_query<kernel_attributes>>;
    add_kernel(with, to, {"Attention", "", 23, 23}, configure_onnx, onnx);
    add_kernel(with, to, {"Attention", "", 24, 24}, configure_onnx, onnx);
    add_kernel(with, to, {"MultiHeadAttention", own_domain, 1, 1}, configure_own, multi_head);
    add_kernel(with, to, {"GroupQueryAttention", own_domain, 1, 1}, configure_own, group_query);
}

} // namespace maskwise::ort
