// Tests compile with other shapes than at add_op.

#include "base/error.hpp"
#include "graph/redescribe.hpp"
#include "support/texts.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

namespace maskwise::graph {
namespace {

logical_tensor typed(std::size_t id, data_type type, const dims& extents = {2, 8}) {
    logical_tensor desc = tensor(id, extents);
    desc.type = type;
    return desc;
}

op typed(op node, data_type type, const dims& extents = {2, 8}) {
    node.outputs[0] = typed(node.outputs[0].id, type, extents);
    return node;
}

// Add in f32, a cast to bf16, and Tanh in bf16.
const std::vector<op> ops{
    typed(make(1, op_kind::add, {typed(10, data_type::f32), typed(11, data_type::f32, {8})}, 12),
          data_type::f32),
    typed(make(2, op_kind::type_cast, {typed(12, data_type::f32)}, 13), data_type::bf16),
    typed(make(3, op_kind::tanh, {typed(13, data_type::bf16)}, 14), data_type::bf16)};

const std::vector<logical_tensor> recorded{typed(10, data_type::f32),
                                           typed(11, data_type::f32, {8})};

std::optional<std::vector<op>> compiled_with(const std::vector<logical_tensor>& inputs) {
    return redescribe(ops, inputs);
}

TEST(redescribe, returns_nothing_if_nothing_changed) {
    EXPECT_FALSE(compiled_with(recorded));
}

TEST(redescribe, infers_shapes_from_compile) {
    const auto now =
        compiled_with({typed(10, data_type::f32, {5, 8}), typed(11, data_type::f32, {5, 1})});
    ASSERT_TRUE(now);
    EXPECT_EQ((*now)[0].inputs[1].extents, (dims{5, 1}));
    for (const op& each : *now) {
        EXPECT_EQ(each.outputs[0].extents, (dims{5, 8}));
        EXPECT_EQ(each.outputs[0].layout, layout_kind::any);
    }
    EXPECT_EQ((*now)[1].outputs[0].type, data_type::bf16);
}

TEST(redescribe, names_a_missing_tensor) {
    EXPECT_EQ(test::refusal<argument_error>([] { compiled_with({typed(10, data_type::f32)}); }),
              "an input (tensor 11) is not in the list given to compile");
}

TEST(redescribe, refuses_shapes_that_do_not_broadcast) {
    EXPECT_THROW(compiled_with({typed(10, data_type::f32, {2, 8}), typed(11, data_type::f32, {7})}),
                 shape_error);
}

} // namespace
} // namespace maskwise::graph
