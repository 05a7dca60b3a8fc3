#include "data/strided.hpp"

#include <cstring>

namespace maskwise::bench {
namespace {

// Calls move(view offset, dense offset, count), in elements, for each run that is contiguous in the
// view and in the dense tensor.
template <typename Move>
void for_each_stretch(const dims& shape, const dims& strides, Move move) {
    const dims dense = dense_strides(shape);
    const std::int64_t step = test::inner_stride(strides);
    test::walk_rows<2>(shape, {strides, dense}, [&](const auto& offsets, std::int64_t extent) {
        if (step == 1) return move(offsets[0], offsets[1], extent);
        for (std::int64_t i = 0; i < extent; ++i) move(offsets[0] + i * step, offsets[1] + i, 1);
    });
}

} // namespace

std::size_t span_elems(const dims& shape, const dims& strides) {
    return static_cast<std::size_t>(test::span_bytes({nullptr, shape, strides}, 1));
}

void scatter(const tensor& values, const dims& strides, std::span<std::byte> to) {
    const auto width = static_cast<std::int64_t>(values.width());
    for_each_stretch(values.shape, strides, [&](auto view, auto dense, auto count) {
        std::memcpy(to.data() + view * width, values.bytes.data() + dense * width,
                    static_cast<std::size_t>(count * width));
    });
}

tensor gather(data_type type, const dims& shape, const dims& strides,
              std::span<const std::byte> from) {
    tensor values(type, shape);
    const auto width = static_cast<std::int64_t>(values.width());
    for_each_stretch(shape, strides, [&](auto view, auto dense, auto count) {
        std::memcpy(values.bytes.data() + dense * width, from.data() + view * width,
                    static_cast<std::size_t>(count * width));
    });
    return values;
}

std::size_t changed_outside(std::span<const std::byte> now, std::span<const std::byte> before,
                            const dims& shape, const dims& strides, std::size_t width) {
    if (span_elems(shape, strides) == static_cast<std::size_t>(test::count_of(shape))) return 0;
    std::vector<bool> inside(now.size(), false);
    for_each_stretch(shape, strides, [&](auto view, auto, auto count) {
        const auto first = static_cast<std::size_t>(view) * width;
        for (std::size_t i = 0; i < static_cast<std::size_t>(count) * width; ++i)
            inside[first + i] = true;
    });
    std::size_t changed = 0;
    for (std::size_t i = 0; i < now.size(); ++i)
        if (!inside[i] && now[i] != before[i]) ++changed;
    return changed;
}

} // namespace maskwise::bench
