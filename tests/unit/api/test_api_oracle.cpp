// Random Selects through the public API against a reference that shares nothing with the library:
// every dialect and type, three shapes that broadcast to each other or not, strides of any kind.
#include "maskwise/maskwise.hpp"

#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"
#include "support/oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace {

using namespace maskwise;
using test::draw;
using test::generator;
using test::one_in;
using test::view;
using shape = std::vector<std::int64_t>;
using enum data_type;

// Types whose elements are bits, with their width in bytes.
constexpr std::pair<data_type, std::int64_t> types[] = {
    {boolean, 1}, {i8, 1},  {u8, 1},  {i16, 2}, {u16, 2}, {f16, 2},       {bf16, 2},       {i32, 4},
    {u32, 4},     {f32, 4}, {i64, 8}, {u64, 8}, {f64, 8}, {complex64, 8}, {complex128, 16}};

bool has_type(dialect form, data_type type) {
    const bool is_complex = type == complex64 || type == complex128;
    if (form == dialect::onednn_select) return type == f32 || type == f16 || type == bf16;
    if (form == dialect::openvino_select_1) return !is_complex;
    return form == dialect::onnx_where_16 || type != bf16;
}

// What all of them broadcast to: in each dimension, counted from the last, the one extent other
// than 1 that occurs; nullopt where two occur.
std::optional<shape> join(const std::vector<shape>& shapes) {
    std::size_t rank = 0;
    for (const shape& one : shapes) rank = std::max(rank, one.size());
    shape joined(rank, 1);
    for (const shape& one : shapes)
        for (std::size_t back = 1; back <= one.size(); ++back) {
            const std::int64_t extent = one[one.size() - back];
            std::int64_t& known = joined[rank - back];
            if (extent != 1 && known != 1 && extent != known) return std::nullopt;
            if (extent != 1) known = extent;
        }
    return joined;
}

// The dialects' rule for the shape of dst.
std::optional<shape> expected_shape(dialect form, auto_broadcast broadcast, const shape& cond,
                                    const shape& src_0, const shape& src_1) {
    if (broadcast == auto_broadcast::none)
        return cond == src_0 && src_0 == src_1 ? std::optional(src_0) : std::nullopt;
    if (form == dialect::onnx_where_9 || form == dialect::onnx_where_16)
        return join({cond, src_0, src_1});
    const auto sources = join({src_0, src_1});
    const auto all = sources ? join({cond, *sources}) : std::nullopt;
    return all == sources ? all : std::nullopt;
}

tensor_desc describe(data_type type, const view& operand) {
    return {type, dims(operand.extents), dims(operand.strides_bytes)};
}

class operand_data {
public:
    operand_data(generator& random, const view& layout, std::int64_t width)
        : layout_(layout), buffer_(static_cast<std::size_t>(test::span_bytes(layout, width)),
                                   one_in(random, 2) ? test::guarded_buffer::edge::front
                                                     : test::guarded_buffer::edge::back) {
        if (buffer_.size() != 0) layout_.data = buffer_.data() + test::bytes_below(layout);
        test::fill_random(random, buffer_.data(), buffer_.size());
    }

    const view& layout() const { return layout_; }
    const test::guarded_buffer& buffer() const { return buffer_; }

private:
    view layout_;
    test::guarded_buffer buffer_;
};

struct random_select {
    dialect form;
    auto_broadcast broadcast;
    data_type type;
    std::int64_t width;
    view cond, src_0, src_1;
};

random_select draw_select(generator& random) {
    random_select drawn;
    drawn.form = static_cast<dialect>(draw(random, 0, 3));
    const bool has_none =
        drawn.form == dialect::onednn_select || drawn.form == dialect::openvino_select_1;
    drawn.broadcast = has_none && one_in(random, 8) ? auto_broadcast::none : auto_broadcast::numpy;
    const auto pick = static_cast<std::size_t>(draw(random, 0, std::size(types) - 1));
    drawn.type = types[pick].first;
    drawn.width = types[pick].second;
    const shape common = test::draw_shape(random, 3000);
    const bool whole = drawn.broadcast == auto_broadcast::none && one_in(random, 2);
    for (view* operand : {&drawn.cond, &drawn.src_0, &drawn.src_1}) {
        *operand = test::draw_input(random, common, operand == &drawn.cond ? 1 : drawn.width);
        if (whole) {
            operand->extents = common;
            test::lay_out(random, *operand, operand == &drawn.cond ? 1 : drawn.width);
        }
        if (one_in(random, 12) && !operand->extents.empty()) ++operand->extents[0];
    }
    return drawn;
}

// dst as the library infers it, or laid out by the caller.
void check_values(generator& random, const random_select& drawn, const shape& expected) {
    const tensor_desc cond = describe(boolean, drawn.cond),
                      src_0 = describe(drawn.type, drawn.src_0),
                      src_1 = describe(drawn.type, drawn.src_1);
    view dst{nullptr, expected, {}};
    test::lay_out(random, dst, drawn.width);
    const bool inferred = one_in(random, 2);
    const plan select = inferred ? compile(drawn.form, cond, src_0, src_1, drawn.broadcast)
                                 : compile(drawn.form, cond, src_0, src_1,
                                           describe(drawn.type, dst), drawn.broadcast);
    ASSERT_EQ(select.dst().extents, dims(expected));
    dst.strides_bytes.assign(select.dst().strides_bytes.begin(), select.dst().strides_bytes.end());
    const operand_data c(random, drawn.cond, 1), x(random, drawn.src_0, drawn.width),
        y(random, drawn.src_1, drawn.width), d(random, dst, drawn.width);
    test::fill_mask(random, c.buffer().data(), c.buffer().size());
    std::vector<std::byte> wanted(d.buffer().data(), d.buffer().data() + d.buffer().size());
    view reference = d.layout();
    if (!wanted.empty()) reference.data = wanted.data() + (d.layout().data - d.buffer().data());
    test::select_reference(c.layout(), x.layout(), y.layout(), reference, drawn.width);
    select.execute(c.layout().data, x.layout().data, y.layout().data, d.layout().data);
    if (wanted.empty()) return;
    ASSERT_EQ(std::memcmp(wanted.data(), d.buffer().data(), wanted.size()), 0) << to_string(select);
}

struct outcomes {
    int selected = 0, refused_types = 0, refused_shapes = 0, cond_expanded = 0;
};

void check_select(std::uint64_t seed, outcomes& seen) {
    generator random(seed);
    const random_select drawn = draw_select(random);
    const tensor_desc cond = describe(boolean, drawn.cond),
                      src_0 = describe(drawn.type, drawn.src_0),
                      src_1 = describe(drawn.type, drawn.src_1);
    SCOPED_TRACE("MASKWISE_TEST_SEED for this case: " + std::to_string(seed) + ", " +
                 std::string(to_string(drawn.form)) + ' ' + std::string(to_string(drawn.type)) +
                 ' ' + to_string(cond.extents) + to_string(src_0.extents) +
                 to_string(src_1.extents));
    const auto infer = [&] { infer_dst(drawn.form, cond, src_0, src_1, drawn.broadcast); };
    if (!has_type(drawn.form, drawn.type)) {
        ++seen.refused_types;
        EXPECT_THROW(infer(), invalid_argument);
        return;
    }
    const auto expected = expected_shape(drawn.form, drawn.broadcast, drawn.cond.extents,
                                         drawn.src_0.extents, drawn.src_1.extents);
    if (!expected) {
        ++seen.refused_shapes;
        EXPECT_THROW(infer(), invalid_shape);
        return;
    }
    ++seen.selected;
    seen.cond_expanded += join({drawn.src_0.extents, drawn.src_1.extents}) != expected;
    check_values(random, drawn, *expected);
}

TEST(api_oracle, agrees_with_the_reference) {
    outcomes seen;
    const int cases = 8000;
    for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i)
        check_select(test::base_seed() + static_cast<std::uint64_t>(i), seen);
    // Cases that never occurred would prove nothing.
    EXPECT_GE(seen.selected, cases / 4);
    EXPECT_GE(seen.refused_types, cases / 20);
    EXPECT_GE(seen.refused_shapes, cases / 20);
    EXPECT_GE(seen.cond_expanded, cases / 50);
}

} // namespace
