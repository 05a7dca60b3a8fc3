#include "where_strings.hpp"

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
        check(with.GetStringTensorDataLength(from.value, &bytes));
        text_.resize(bytes + 1); // not null where all strings are empty
        std::vector<std::size_t> offsets(count + 1, bytes);
        check(with.GetStringTensorContent(from.value, text_.data(), bytes, offsets.data(), count));
        for (std::size_t i = 0; i < count; ++i)
            views_.emplace_back(text_.data() + offsets[i], offsets[i + 1] - offsets[i]);
    }
    const std::string_view* views() const { return views_.data(); }

private:
    std::vector<char> text_;
    std::vector<std::string_view> views_;
};

void write_strings(const runtime& with, abi::value* output,
                   const std::vector<std::string_view>& from) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        char* buffer = nullptr;
        check(with.GetResizedStringTensorElementBuffer(output, i, from[i].size(), &buffer));
        if (!from[i].empty()) std::memcpy(buffer, from[i].data(), from[i].size());
    }
}

} // namespace

void run_where_of_strings(const runtime& with, abi::kernel_context* context, dialect form,
                          const input_tensor& cond, const input_tensor& x, const input_tensor& y) {
    const plan select = compile(form, {.cond = cond.desc,
                                       .src_0 = {view_type, x.desc.extents},
                                       .src_1 = {view_type, y.desc.extents}});
    const text_copy src_0(with, x), src_1(with, y);
    std::vector<std::string_view> dst(elements_of(select.dst().extents));
    select.execute({.cond = cond.data, .src_0 = src_0.views(), .src_1 = src_1.views()}, dst.data(),
                   parallel_loop{1, [](auto, const auto& body) { body(0); }});
    write_strings(with, make_output(with, context, select.dst().extents), dst);
}

} // namespace maskwise::ort
