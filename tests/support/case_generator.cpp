#include "support/case_generator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace maskwise::test {
namespace {

std::int64_t draw_extent(generator& random, std::int64_t most) {
    static constexpr std::int64_t usual[] = {1,  1,  2,  2,  3,  4,  5,  7,  8,   9,   12,  15,
                                             16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 257, 1000};
    const auto pick = static_cast<std::size_t>(draw(random, 0, std::size(usual) - 1));
    return std::min(usual[pick], std::max<std::int64_t>(most, 1));
}

void append_view(std::string& text, const char* name, const view& operand) {
    text += std::string(" ") + name + "={";
    for (const std::int64_t extent : operand.extents) text += std::to_string(extent) + ',';
    text += "}@{";
    for (const std::int64_t stride : operand.strides_bytes) text += std::to_string(stride) + ',';
    text += '}';
}

} // namespace

// Consumes only as many of a fuzzer's bytes as the range needs, so that one changed byte changes
// one draw.
std::int64_t generator::draw(std::int64_t least, std::int64_t most) {
    if (bytes_.empty()) return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
    const std::uint64_t range =
        static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
    std::uint64_t value = 0;
    for (std::uint64_t rest = range; rest > 0 && !bytes_.empty(); rest >>= 8) {
        value = value << 8 | bytes_.front();
        bytes_ = bytes_.subspan(1);
    }
    const std::uint64_t within = range == UINT64_MAX ? value : value % (range + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + within);
}

std::int64_t draw(generator& random, std::int64_t least, std::int64_t most) {
    return random.draw(least, most);
}

bool one_in(generator& random, int n) {
    return draw(random, 1, n) == 1;
}

double draw_number(generator& random, double least, double end) {
    return least + (end - least) * static_cast<double>(random() >> 11) * 0x1p-53;
}

std::uint64_t base_seed() {
    const char* text = std::getenv("MASKWISE_TEST_SEED");
    return text == nullptr ? 20260801 : std::strtoull(text, nullptr, 10);
}

std::vector<std::int64_t> draw_shape(generator& random, std::int64_t most_elements) {
    const std::int64_t rank = one_in(random, 40) ? draw(random, 7, 64) : draw(random, 0, 6);
    std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
    std::int64_t room = std::max<std::int64_t>(1, most_elements >> draw(random, 0, 8));
    for (std::int64_t& extent : extents) {
        extent = draw_extent(random, room);
        room /= extent;
    }
    std::shuffle(extents.begin(), extents.end(), random);
    if (rank > 0 && one_in(random, 60))
        extents[static_cast<std::size_t>(draw(random, 0, rank - 1))] = 0;
    return extents;
}

// Strides without overlap: dimensions in random or row-major order, forwards or backwards, with or
// without padding.
void lay_out(generator& random, view& operand, std::int64_t width) {
    const std::size_t rank = operand.extents.size();
    std::vector<std::size_t> order(rank);
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    if (one_in(random, 3)) std::shuffle(order.begin(), order.end(), random);
    const bool padded = one_in(random, 3);
    // In an array of structures, the padding may be a fraction of an element.
    const std::int64_t unit = one_in(random, 4) ? 1 : width;
    std::int64_t stride = width * (one_in(random, 12) ? draw(random, 2, 3) : 1);
    operand.strides_bytes.assign(rank, 0);
    for (const std::size_t d : order) {
        operand.strides_bytes[d] = stride;
        stride *= std::max<std::int64_t>(operand.extents[d], 1);
        if (padded && one_in(random, 2)) stride += unit * draw(random, 1, 5);
    }
    if (one_in(random, 4))
        for (std::int64_t& step : operand.strides_bytes)
            if (one_in(random, 2)) step = -step;
}

view draw_input(generator& random, const std::vector<std::int64_t>& dst, std::int64_t width) {
    view operand;
    const auto rank = static_cast<std::int64_t>(dst.size());
    const std::int64_t rank_of_input = one_in(random, 3) ? draw(random, 0, rank) : rank;
    operand.extents.assign(dst.end() - rank_of_input, dst.end());
    const int broadcast = static_cast<int>(draw(random, 0, 2)); // none, some, many dimensions
    for (std::int64_t& extent : operand.extents)
        if (broadcast > 0 && one_in(random, broadcast == 1 ? 4 : 2)) extent = 1;
    lay_out(random, operand, width);
    // Elements of an input may repeat or overlap in any way.
    for (std::int64_t& stride : operand.strides_bytes)
        if (one_in(random, 25)) stride = one_in(random, 2) ? 0 : width * draw(random, -3, 9);
    return operand;
}

select_case make_case(generator& random, std::int64_t most_elements) {
    select_case drawn;
    drawn.width_bytes = std::int64_t{1} << draw(random, 0, 4);
    drawn.dst.extents = draw_shape(random, most_elements);
    lay_out(random, drawn.dst, drawn.width_bytes);
    drawn.cond = draw_input(random, drawn.dst.extents, 1);
    drawn.src_0 = draw_input(random, drawn.dst.extents, drawn.width_bytes);
    drawn.src_1 = draw_input(random, drawn.dst.extents, drawn.width_bytes);
    if (one_in(random, 6)) {
        drawn.in_place = static_cast<int>(draw(random, 0, 1));
        (drawn.in_place == 0 ? drawn.src_0 : drawn.src_1) = drawn.dst;
    }
    return drawn;
}

select_case make_permuted_case(generator& random) {
    select_case drawn;
    drawn.width_bytes = std::int64_t{1} << draw(random, 0, 4);
    const std::int64_t rank = draw(random, 3, 4), most = rank == 3 ? 150 : 40;
    std::vector<std::int64_t> extents;
    for (std::int64_t d = 0; d < rank; ++d) extents.push_back(draw(random, 10, most));
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (view* operand : {&drawn.cond, &drawn.src_0, &drawn.src_1, &drawn.dst}) {
        std::shuffle(order.begin(), order.end(), random);
        operand->extents = extents;
        operand->strides_bytes.assign(extents.size(), 0);
        std::int64_t stride = operand == &drawn.cond ? 1 : drawn.width_bytes;
        for (const std::size_t d : order) {
            operand->strides_bytes[d] = stride;
            stride *= extents[d];
        }
    }
    if (one_in(random, 4)) {
        drawn.in_place = static_cast<int>(draw(random, 0, 1));
        (drawn.in_place == 0 ? drawn.src_0 : drawn.src_1) = drawn.dst;
    }
    return drawn;
}

void fill_random(generator& random, std::byte* data, std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += 8) {
        const std::uint64_t bits = random();
        std::memcpy(data + offset, &bits, std::min<std::size_t>(8, bytes - offset));
    }
}

void fill_mask(generator& random, std::byte* data, std::size_t bytes) {
    const std::int64_t kind = draw(random, 0, 5);
    const std::int64_t longest = kind == 1 ? 300 : 1;
    const int often = kind == 2 ? 500 : 2;
    std::size_t offset = 0;
    while (offset < bytes) {
        const bool is_true = kind == 3 || (kind != 4 && one_in(random, often));
        const auto length = static_cast<std::size_t>(draw(random, 1, longest));
        for (const std::size_t end = std::min(bytes, offset + length); offset < end; ++offset)
            data[offset] = static_cast<std::byte>(is_true ? draw(random, 1, 255) : 0);
    }
}

guarded_buffer place(generator& random, view& operand, std::int64_t width_bytes) {
    const auto edge = one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back;
    guarded_buffer memory(static_cast<std::size_t>(span_bytes(operand, width_bytes)), edge);
    operand.data = memory.data() + (memory.size() == 0 ? 0 : bytes_below(operand));
    fill_random(random, memory.data(), memory.size());
    return memory;
}

std::string to_string(const select_case& c) {
    std::string text = "width=" + std::to_string(c.width_bytes);
    append_view(text, "cond", c.cond);
    append_view(text, "src_0", c.src_0);
    append_view(text, "src_1", c.src_1);
    append_view(text, "dst", c.dst);
    return text + " in_place=" + std::to_string(c.in_place);
}

} // namespace maskwise::test
