#include "cases.hpp"

#include <algorithm>
#include <numeric>

namespace maskwise::bench {
namespace {

bench_case dense_case(const std::string& name, data_type type, const dims& cond, const dims& src_0,
                      const dims& src_1, const dims& dst, mask_kind mask) {
    return {name,
            {dense_desc(data_type::boolean, cond), dense_desc(type, src_0), dense_desc(type, src_1),
             dense_desc(type, dst)},
            mask};
}

std::int64_t pick(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

dims draw_shape(std::mt19937_64& random) {
    static constexpr std::int64_t inner[] = {1,  2,  3,   5,   7,   8,    16,   24,  31,
                                             33, 64, 100, 128, 255, 1000, 1024, 4096};
    const std::int64_t rank = pick(random, 1, 6);
    dims shape;
    for (std::int64_t d = 1; d < rank; ++d) shape.push_back(d + 1 < rank ? pick(random, 1, 12) : 1);
    shape.push_back(inner[pick(random, 0, std::size(inner) - 1)]);
    return shape;
}

// Makes the outermost dimension as long as it takes.
void stretch(dims& shape, std::int64_t elements) {
    const std::int64_t inside =
        std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
    shape[0] = std::max<std::int64_t>(1, elements / inside);
}

tensor_desc draw_layout(std::mt19937_64& random, data_type type, const dims& shape, bool transposed,
                        bool padded) {
    std::vector<int> order(static_cast<std::size_t>(shape.rank()));
    std::iota(order.rbegin(), order.rend(), 0);
    if (transposed) std::shuffle(order.begin(), order.end(), random);
    tensor_desc desc{type, shape, dims(shape.rank(), 0)};
    auto stride = static_cast<std::int64_t>(width_bytes(type));
    const auto width = stride;
    bool innermost = true;
    for (const int d : order) {
        desc.strides_bytes[d] = stride;
        stride *= shape[d];
        if (padded && innermost) stride += width * pick(random, 1, 8);
        innermost = false;
    }
    return desc;
}

tensor_desc draw_input(std::mt19937_64& random, data_type type, const dims& dst) {
    dims shape = dst;
    const std::int64_t kind = pick(random, 0, 4);
    for (std::int64_t& extent : shape)
        if (kind == 3 || (kind > 1 && pick(random, 0, 1) == 0)) extent = kind == 3 ? 1 : 1;
    const std::int64_t layout = pick(random, 0, 5);
    return draw_layout(random, type, shape, layout == 0, layout == 1);
}

void fill_runs(std::byte* data, std::int64_t bytes, std::int64_t least, std::int64_t most,
               std::mt19937_64& random) {
    bool value = false;
    for (std::int64_t at = 0; at < bytes; value = !value)
        for (std::int64_t end = std::min(bytes, at + pick(random, least, most)); at < end; ++at)
            data[at] = static_cast<std::byte>(value);
}

} // namespace

std::string_view to_string(mask_kind mask) {
    constexpr std::string_view names[] = {"random", "causal", "padding", "ones", "runs"};
    return names[static_cast<int>(mask)];
}

std::vector<bench_case> select_cases() {
    std::vector<bench_case> cases;
    const auto add = [&](const char* name, data_type type, dims cond, dims src_0, dims src_1,
                         dims dst, mask_kind mask) {
        cases.push_back(dense_case(name, type, cond, src_0, src_1, dst, mask));
    };
    using enum mask_kind;
    for (const data_type t : {data_type::f32, data_type::bf16}) {
        const dims big{16, 16, 256, 256};
        add("same", t, big, big, big, big, random);
        add("same", t, big, big, big, big, causal);
        add("same", t, big, big, big, big, runs);
        add("same", t, big, big, big, big, ones);
        add("cond256x256", t, {256, 256}, big, big, big, random);
        add("cond16x1x1x256", t, {16, 1, 1, 256}, big, big, big, padding);
        add("cond+src_1 scalar", t, big, big, {}, big, random);
        add("src_0 scalar", t, big, {}, big, big, random);
        add("src_1 row", t, big, big, {256}, big, random);
        add("7 sdpa bwd", t, {256, 16, 128, 128}, {256, 16, 128, 128}, {}, {256, 16, 128, 128},
            causal);
        add("3 squad", t, {8, 1, 1, 384}, {1}, {8, 12, 384, 384}, {8, 12, 384, 384}, padding);
        add("6 s1000", t, {1, 8, 2, 1000, 1000}, {1, 8, 2, 1000, 1000}, {}, {1, 8, 2, 1000, 1000},
            causal);
        add("13 gpt2", t, {1, 1, 1024, 1024}, {2, 12, 1024, 1024}, {}, {2, 12, 1024, 1024}, causal);
        add("18 deberta", t, {4, 1, 512, 512}, {4, 12, 512, 512}, {}, {4, 12, 512, 512}, padding);
        add("22 nerf x3", t, {2048 * 512, 1}, {2048 * 512, 3}, {2048 * 512, 3}, {2048 * 512, 3},
            random);
        add("23 kv", t, {2048, 1, 1}, {2048, 8, 128}, {2048, 8, 128}, {2048, 8, 128}, random);
        add("23 kv", t, {2048, 1, 1}, {2048, 8, 128}, {2048, 8, 128}, {2048, 8, 128}, ones);
        add("27 nms", t, {16, 1000, 1}, {16, 1000, 80}, {}, {16, 1000, 80}, random);
        add("29 x20480", t, {1024, 20480}, {1024, 20480}, {1024, 20480}, {1024, 20480}, random);
        add("64x64 L2", t, {1, 12, 64, 64}, {1, 12, 64, 64}, {}, {1, 12, 64, 64}, causal);
        add("32x1024", t, {32, 1024}, {32, 1024}, {32, 1024}, {32, 1024}, random);
        add("15 mt", t, {8, 1, 1, 64}, {}, {8, 12, 64, 64}, {8, 12, 64, 64}, padding);
        add("2 distil", t, {1, 1, 1, 128}, {1}, {1, 12, 128, 128}, {1, 12, 128, 128}, padding);
    }
    return cases;
}

bench_case sweep_case(std::uint64_t seed, std::int64_t bytes) {
    std::mt19937_64 random(seed * 7919 + 1);
    static constexpr data_type types[] = {data_type::f32, data_type::bf16, data_type::f16};
    const data_type type = types[pick(random, 0, 2)];
    const auto width = static_cast<std::int64_t>(width_bytes(type));
    dims shape = draw_shape(random);
    stretch(shape, bytes / (3 * width + 1));
    bench_case made{"sweep" + std::to_string(seed), {}, mask_kind::random};
    made.desc.dst =
        draw_layout(random, type, shape, pick(random, 0, 9) == 0, pick(random, 0, 9) == 0);
    made.desc.cond = draw_input(random, data_type::boolean, shape);
    made.desc.src_0 = draw_input(random, type, shape);
    made.desc.src_1 = draw_input(random, type, shape);
    return made;
}

void fill_mask(mask_kind mask, const tensor_desc& cond, std::byte* data, std::int64_t bytes,
               std::mt19937_64& random) {
    const int rank = cond.extents.rank();
    const std::int64_t columns = rank > 0 ? cond.extents[rank - 1] : 1;
    const std::int64_t rows = rank > 1 ? cond.extents[rank - 2] : 1;
    if (mask == mask_kind::runs) return fill_runs(data, bytes, 500, 1000, random);
    std::int64_t length = columns;
    for (std::int64_t i = 0; i < bytes; ++i) {
        const std::int64_t column = i % columns, row = i / columns % rows;
        if (i % (columns * rows) == 0) length = pick(random, columns / 2, columns);
        bool value = mask == mask_kind::ones;
        if (mask == mask_kind::random) value = (random() & 1) != 0;
        if (mask == mask_kind::causal) value = column <= row;
        if (mask == mask_kind::padding) value = column < length;
        data[i] = static_cast<std::byte>(value);
    }
}

} // namespace maskwise::bench
