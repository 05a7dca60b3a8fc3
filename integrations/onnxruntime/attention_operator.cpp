#include "attention_work.hpp"
#include "provider.hpp"
#include "registry.hpp"

#include <array>
#include <memory>
#include <utility>

namespace maskwise::ort {
namespace {

// A kernel's attributes, as a node has its own.
struct kernel_attributes {
    const runtime& with;
    const OrtKernelInfo* info;

    int version() const {
        int since = 0;
        check(with.KernelInfo_GetOperatorSinceVersion(info, &since));
        return since;
    }
    std::int64_t integer(const char* name, std::int64_t otherwise) const {
        return read(with.KernelInfoGetAttribute_int64, name, otherwise);
    }
    float number(const char* name, float otherwise) const {
        return read(with.KernelInfoGetAttribute_float, name, otherwise);
    }

private:
    template <class Function, class Number>
    Number read(Function function, const char* name, Number otherwise) const {
        Number found = otherwise;
        OrtStatus* const status = function(info, name, &found);
        if (status == nullptr) return found;
        with.ReleaseStatus(status);
        return otherwise;
    }
};

std::shared_ptr<session_facts> session_of(const runtime& with, const OrtKernelInfo* info) {
    const OrtEp* found = nullptr;
    check(with.KernelInfo_GetEp(info, &found));
    return static_cast<const provider*>(found)->session();
}

class attention_kernel : public OrtKernelImpl {
public:
    attention_kernel(const runtime& with, const attention_operator& of, const OrtKernelInfo* info)
        : OrtKernelImpl{api_version, 0, compute, release, nullptr, nullptr}, with_(with), of_(of),
          settings_(settings_of(of, kernel_attributes{with, info})),
          session_(session_of(with, info)) {}

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
        ort::run(begin_attention(with_, of_, at, settings_, loop), plans_, session_->scratch, loop);
    }

    const runtime& with_;
    const attention_operator& of_;
    const attention_settings settings_;
    const std::shared_ptr<session_facts> session_;
    recent_attentions plans_;
};

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

template <std::size_t index>
OrtStatus* create(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
    const auto& with = *static_cast<const runtime*>(state);
    return guarded(
        with, [&] { *kernel = new attention_kernel(with, attention_operators()[index], info); });
}

} // namespace

void add_attention_kernels(const runtime& with, OrtKernelRegistry* to) {
    constexpr OrtKernelCreateFunc creators[] = {create<0>, create<1>, create<2>};
    for (std::size_t i = 0; const attention_operator& each : attention_operators()) {
        const auto configure = each.kind == attention_kind::onnx ? configure_onnx : configure_own;
        for (int version = each.first; version <= each.last; ++version)
            add_kernel(with, to, {each.type, each.domain, version, version}, configure,
                       creators[i]);
        ++i;
    }
}

} // namespace maskwise::ort
