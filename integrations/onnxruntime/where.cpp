#include "kernel_context.hpp"
#include "registry.hpp"

#include "exec/parts.hpp"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace maskwise::ort {
namespace {

// Strings are selected as string_views of 16 bytes.
constexpr data_type view_type = data_type::complex128;
static_assert(sizeof(std::string_view) == 16);

std::size_t elements_of(const dims& extents) {
    std::size_t count = 1;
    for (const std::int64_t extent : extents) count *= static_cast<std::size_t>(extent);
    return count;
}

// A copy of a tensor's strings, with a string_view per string.
class text_copy {
public:
    text_copy(const runtime& api, const input_tensor& tensor) {
        const std::size_t count = elements_of(tensor.desc.extents);
        if (count == 0) return;
        std::size_t bytes = 0;
        check(api.GetStringTensorDataLength(tensor.value, &bytes));
        text_.resize(bytes + 1); // so that data() is not null if all strings are empty
        std::vector<std::size_t> offsets(count + 1, bytes);
        check(api.GetStringTensorContent(tensor.value, text_.data(), bytes, offsets.data(), count));
        for (std::size_t i = 0; i < count; ++i)
            views_.emplace_back(text_.data() + offsets[i], offsets[i + 1] - offsets[i]);
    }
    const std::string_view* views() const { return views_.data(); }

private:
    std::vector<char> text_;
    std::vector<std::string_view> views_;
};

void write_strings(const runtime& api, OrtValue* output,
                   const std::vector<std::string_view>& strings) {
    for (std::size_t i = 0; i < strings.size(); ++i) {
        char* buffer = nullptr;
        check(api.GetResizedStringTensorElementBuffer(output, i, strings[i].size(), &buffer));
        if (!strings[i].empty()) std::memcpy(buffer, strings[i].data(), strings[i].size());
    }
}

// Uses ONNX Runtime's string functions, because the strings' layout is not public. Runs on one
// thread.
void run_strings(const runtime& api, const kernel_context& context, dialect form,
                 const input_tensor& cond, const input_tensor& x, const input_tensor& y) {
    const plan select = compile(form, {.cond = cond.desc,
                                       .src_0 = {view_type, x.desc.extents},
                                       .src_1 = {view_type, y.desc.extents}});
    const text_copy src_0(api, x), src_1(api, y);
    std::vector<std::string_view> dst(elements_of(select.dst().extents));
    select.execute({.cond = cond.data, .src_0 = src_0.views(), .src_1 = src_1.views()}, dst.data(),
                   calling_thread());
    write_strings(api, context.make_output(select.dst().extents), dst);
}

class where_kernel : public OrtKernelImpl {
public:
    where_kernel(const runtime& api, dialect form)
        : OrtKernelImpl{api_version, 0, compute, release, nullptr, nullptr}, api_(api),
          form_(form) {}

private:
    static where_kernel& self(OrtKernelImpl* kernel) { return *static_cast<where_kernel*>(kernel); }
    static OrtStatus* compute(OrtKernelImpl* kernel, OrtKernelContext* context) noexcept {
        return guarded(self(kernel).api_, [&] { self(kernel).run({self(kernel).api_, context}); });
    }
    static void release(OrtKernelImpl* kernel) noexcept { delete &self(kernel); }

    void run(const kernel_context& context) const {
        const input_tensor cond = context.input(0), x = context.input(1), y = context.input(2);
        if (x.desc.type == data_type::string) return run_strings(api_, context, form_, cond, x, y);
        const plan select = compile(form_, {.cond = cond.desc, .src_0 = x.desc, .src_1 = y.desc});
        select.execute({.cond = cond.data, .src_0 = x.data, .src_1 = y.data},
                       context.output_data(select.dst().extents), context.loop(processors()));
    }

    const runtime& api_;
    dialect form_;
};

// ONNX's type constraints are B for the condition and T for X and Y. The output may overwrite X or
// Y if this input has the output's shape and no other reader.
void configure(const runtime& api, OrtKernelDefBuilder* builder) {
    std::vector<data_type> types;
    for (const auto& [_, type] : element_types) types.push_back(type);
    constrain_type(api, builder, "B", std::array{data_type::boolean});
    constrain_type(api, builder, "T", types);
    constexpr int inputs[] = {1, 2}, outputs[] = {0, 0};
    check(api.KernelDefBuilder_AddInputOutputMutableAliases(builder, inputs, outputs, 2));
}

OrtStatus* create_where(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
    const auto& api = *static_cast<const runtime*>(state);
    return guarded(api, [&] {
        int since = 0;
        check(api.KernelInfo_GetOperatorSinceVersion(info, &since));
        const dialect form = since < 16 ? dialect::onnx_where_9 : dialect::onnx_where_16;
        *kernel = new where_kernel(api, form);
    });
}

} // namespace

void add_where_kernels(const runtime& api, OrtKernelRegistry* registry) {
    add_kernel(api, registry, {"Where", "", 9, 15}, configure, create_where);
    add_kernel(api, registry, {"Where", "", 16, newest_version}, configure, create_where);
}

} // namespace maskwise::ort
