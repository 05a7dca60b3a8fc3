#include "calls.hpp"
#include "registry.hpp"

#include "exec/parts.hpp"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace maskwise::ort {
namespace {

// Selected in place of the strings themselves, as elements of 16 bytes.
constexpr data_type view_type = data_type::complex128;
static_assert(sizeof(std::string_view) == 16);

std::size_t elements_of(const dims& extents) {
    std::size_t count = 1;
    for (const std::int64_t extent : extents) count *= static_cast<std::size_t>(extent);
    return count;
}

// A copy of a tensor's text, and where in it each string lies.
class text_copy {
public:
    text_copy(const runtime& with, const input_tensor& from) {
        const std::size_t count = elements_of(from.desc.extents);
        if (count == 0) return;
        std::size_t bytes = 0;
        check(with.GetStringTensorDataLength(from.theirs, &bytes));
        text_.resize(bytes + 1); // not null where all strings are empty
        std::vector<std::size_t> offsets(count + 1, bytes);
        check(with.GetStringTensorContent(from.theirs, text_.data(), bytes, offsets.data(), count));
        for (std::size_t i = 0; i < count; ++i)
            views_.emplace_back(text_.data() + offsets[i], offsets[i + 1] - offsets[i]);
    }
    const std::string_view* views() const { return views_.data(); }

private:
    std::vector<char> text_;
    std::vector<std::string_view> views_;
};

void write_strings(const runtime& with, OrtValue* output,
                   const std::vector<std::string_view>& from) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        char* buffer = nullptr;
        check(with.GetResizedStringTensorElementBuffer(output, i, from[i].size(), &buffer));
        if (!from[i].empty()) std::memcpy(buffer, from[i].data(), from[i].size());
    }
}

// Through ONNX Runtime's functions for strings: what one is in its memory is not said. One thread.
void run_strings(const runtime& with, const call& at, dialect form, const input_tensor& cond,
                 const input_tensor& x, const input_tensor& y) {
    const plan select = compile(form, {.cond = cond.desc,
                                       .src_0 = {view_type, x.desc.extents},
                                       .src_1 = {view_type, y.desc.extents}});
    const text_copy src_0(with, x), src_1(with, y);
    std::vector<std::string_view> dst(elements_of(select.dst().extents));
    select.execute({.cond = cond.data, .src_0 = src_0.views(), .src_1 = src_1.views()}, dst.data(),
                   calling_thread());
    write_strings(with, at.make_output(select.dst().extents), dst);
}

class where_kernel : public OrtKernelImpl {
public:
    where_kernel(const runtime& with, dialect form)
        : OrtKernelImpl{api_version, 0, compute, release, nullptr, nullptr}, with_(with),
          form_(form) {}

private:
    static where_kernel& self(OrtKernelImpl* kernel) { return *static_cast<where_kernel*>(kernel); }
    static OrtStatus* compute(OrtKernelImpl* kernel, OrtKernelContext* context) noexcept {
        return guarded(self(kernel).with_, [&] {
            self(kernel).run({self(kernel).with_, context});
        });
    }
    static void release(OrtKernelImpl* kernel) noexcept { delete &self(kernel); }

    void run(const call& at) const {
        const input_tensor cond = at.input(0), x = at.input(1), y = at.input(2);
        if (x.desc.type == data_type::string) return run_strings(with_, at, form_, cond, x, y);
        const plan select = compile(form_, {.cond = cond.desc, .src_0 = x.desc, .src_1 = y.desc});
        select.execute({.cond = cond.data, .src_0 = x.data, .src_1 = y.data},
                       at.output_data(select.dst().extents), at.loop(processors()));
    }

    const runtime& with_;
    dialect form_;
};

// B and T are the names that ONNX's definition of Where gives to its types. The output may be
// written over X or over Y where that has its shape and no other reader.
void configure(const runtime& with, OrtKernelDefBuilder* builder) {
    std::vector<data_type> all;
    for (const auto& [_, type] : element_types) all.push_back(type);
    constrain_type(with, builder, "B", std::array{data_type::boolean});
    constrain_type(with, builder, "T", all);
    constexpr int inputs[] = {1, 2}, outputs[] = {0, 0};
    check(with.KernelDefBuilder_AddInputOutputMutableAliases(builder, inputs, outputs, 2));
}

OrtStatus* create_where(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
    const auto& with = *static_cast<const runtime*>(state);
    return guarded(with, [&] {
        int since = 0;
        check(with.KernelInfo_GetOperatorSinceVersion(info, &since));
        const dialect form = since < 16 ? dialect::onnx_where_9 : dialect::onnx_where_16;
        *kernel = new where_kernel(with, form);
    });
}

} // namespace

void add_where_kernels(const runtime& with, OrtKernelRegistry* to) {
    add_kernel(with, to, {"Where", "", 9, 15}, configure, create_where);
    add_kernel(with, to, {"Where", "", 16, newest_version}, configure, create_where);
}

} // namespace maskwise::ort
