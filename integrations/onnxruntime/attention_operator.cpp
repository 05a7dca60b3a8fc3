#include "attention_work.hpp"
#include "provider.hpp"
#include "registry.hpp"

#include <array>
#include <memory>
#include <utility>

namespace maskwise::ort {
namespace {

// A kernel's attributes, with the functions that settings_of calls.
struct kernel_attributes {
    const runtime& api;
    const OrtKernelInfo* info;

    int version() const {
        int since = 0;
        check(api.KernelInfo_GetOperatorSinceVersion(info, &since));
        return since;
    }
    std::int64_t integer(const char* name, std::int64_t fallback) const {
        return read(api.KernelInfoGetAttribute_int64, name, fallback);
    }
    float number(const char* name, float fallback) const {
        return read(api.KernelInfoGetAttribute_float, name, fallback);
    }

private:
    template <class Function, class Number>
    Number read(Function function, const char* name, Number fallback) const {
        Number number = fallback;
        OrtStatus* const status = function(info, name, &number);
        if (status == nullptr) return number;
        api.ReleaseStatus(status);
        return fallback;
    }
};

std::shared_ptr<session_facts> session_of(const runtime& api, const OrtKernelInfo* info) {
    const OrtEp* ep = nullptr;
    check(api.KernelInfo_GetEp(info, &ep));
    return static_cast<const provider*>(ep)->session();
}

class attention_kernel : public OrtKernelImpl {
public:
    attention_kernel(const runtime& api, const attention_operator& op, const OrtKernelInfo* info)
        : OrtKernelImpl{api_version, 0, compute, release, nullptr, nullptr}, api_(api), op_(op),
          settings_(settings_of(op, kernel_attributes{api, info})),
          session_(session_of(api, info)) {}

private:
    static attention_kernel& self(OrtKernelImpl* kernel) {
        return *static_cast<attention_kernel*>(kernel);
    }
    static OrtStatus* compute(OrtKernelImpl* kernel, OrtKernelContext* context) noexcept {
        return guarded(self(kernel).api_, [&] { self(kernel).run({self(kernel).api_, context}); });
    }
    static void release(OrtKernelImpl* kernel) noexcept { delete &self(kernel); }

    void run(const kernel_context& context) {
        const parallel_loop loop = context.loop(session_->threads);
        ort::run(begin_attention(api_, op_, context, settings_, loop), plans_, session_->scratch,
                 loop);
    }

    const runtime& api_;
    const attention_operator& op_;
    const attention_settings settings_;
    const std::shared_ptr<session_facts> session_;
    recent_attentions plans_;
};

// ONNX's type constraints: T1 for queries and keys, T2 for values, U for the mask.
void configure_onnx(const runtime& api, OrtKernelDefBuilder* builder) {
    constexpr std::array types{data_type::f32, data_type::f16};
    constexpr std::array masks{data_type::f32, data_type::f16, data_type::boolean};
    constrain_type(api, builder, "T1", types);
    constrain_type(api, builder, "T2", types);
    constrain_type(api, builder, "U", masks);
}

void configure_microsoft(const runtime& api, OrtKernelDefBuilder* builder) {
    constrain_type(api, builder, "T", std::array{data_type::f32});
    constrain_type(api, builder, "M", std::array{data_type::i32});
}

template <std::size_t index>
OrtStatus* create(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
    const auto& api = *static_cast<const runtime*>(state);
    return guarded(
        api, [&] { *kernel = new attention_kernel(api, attention_operators()[index], info); });
}

} // namespace

void add_attention_kernels(const runtime& api, OrtKernelRegistry* registry) {
    constexpr OrtKernelCreateFunc creators[] = {create<0>, create<1>, create<2>};
    for (std::size_t i = 0; const attention_operator& op : attention_operators()) {
        const auto configure =
            op.kind == attention_kind::onnx ? configure_onnx : configure_microsoft;
        for (int version = op.first; version <= op.last; ++version)
            add_kernel(api, registry, {op.type, op.domain, version, version}, configure,
                       creators[i]);
        ++i;
    }
}

} // namespace maskwise::ort
