#include "where_kernel.hpp"

#include "loop.hpp"
#include "tensors.hpp"
#include "where_strings.hpp"

namespace maskwise::ort {
namespace {

class where_kernel : public abi::layout::kernel_impl {
public:
    where_kernel(const runtime& with, dialect form)
        : abi::layout::kernel_impl{abi::api_version, 0, compute, release, nullptr, nullptr},
          with_(with), form_(form) {}

private:
    static where_kernel& self(abi::kernel_impl* kernel) {
        return *static_cast<where_kernel*>(kernel);
    }
    static abi::status* compute(abi::kernel_impl* kernel, abi::kernel_context* context) noexcept {
        return guarded(self(kernel).with_, [&] { self(kernel).run(context); });
    }
    static void release(abi::kernel_impl* kernel) noexcept { delete &self(kernel); }

    void run(abi::kernel_context* context) const {
        const input_tensor cond = read_input(with_, context, 0), x = read_input(with_, context, 1),
                           y = read_input(with_, context, 2);
        if (x.desc.type == data_type::string)
            return run_where_of_strings(with_, context, form_, cond, x, y);
        const plan select = compile(form_, {.cond = cond.desc, .src_0 = x.desc, .src_1 = y.desc});
        void* dst = nullptr;
        check(with_.GetTensorMutableData(make_output(with_, context, select.dst().extents), &dst));
        select.execute({.cond = cond.data, .src_0 = x.data, .src_1 = y.data}, dst,
                       loop_of(with_, context, processors()));
    }

    const runtime& with_;
    dialect form_;
};

} // namespace

abi::kernel_impl* make_where_kernel(const runtime& with, const abi::kernel_info* info) {
    int since = 0;
    check(with.KernelInfo_GetOperatorSinceVersion(info, &since));
    return new where_kernel(with, since < 16 ? dialect::onnx_where_9 : dialect::onnx_where_16);
}

} // namespace maskwise::ort
