// Operators described by the tensors of a compile that differ from those of add_op.

#include "base/error.hpp"
#include "graph/redescribe.hpp"
#include "support/texts.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

namespace maskwise::graph {
namespace {

logical_tensor typed(std::size_t id, data_type type, const dims& extents = {2, 8}) {
    logical_tensor made = tensor(id, extents);
    made.type = type;
    return made;
}

op typed(op made, data_type type, const dims& extents = {2, 8}) {
    made.outputs[0] = typed(made.outputs[0].id, type, extents);
    return made;
}

// Add in f32, a cast to bf16, and an Exp there.
const std::vector<op> ops{
    typed(make(1, op_kind::add, {typed(10, data_type::f32), typed(11, data_type::f32, {8})}, 12),
          data_type::f32),
    typed(make(2, op_kind::type_cast, {typed(12, data_type::f32)}, 13), data_type::bf16),
    typed(make(3, op_kind::exp, {typed(13, data_type::bf16)}, 14), data_type::bf16)};

const std::vector<logical_tensor> recorded{typed(10, data_type::f32),
                                           typed(11, data_type::f32, {8})};

std::optional<std::vector<op>> compiled_with(const std::vector<logical_tensor>& inputs,
                                             const logical_tensor& result) {
    return redescribe(ops, inputs, std::vector{result});
}

TEST(redescribe, is_nothing_where_nothing_changed) {
    EXPECT_FALSE(compiled_with(recorded, typed(14, data_type::bf16)));
}

TEST(redescribe, infers_the_shapes_of_what_was_given) {
    const auto now =
        compiled_with({typed(10, data_type::f32, {5, 8}), typed(11, data_type::f32, {5, 1})},
                      typed(14, data_type::bf16, {5, 8}));
    ASSERT_TRUE(now);
    EXPECT_EQ((*now)[0].inputs[1].extents, (dims{5, 1}));
    for (const op& each : *now) {
        EXPECT_EQ(each.outputs[0].extents, (dims{5, 8}));
        EXPECT_EQ(each.outputs[0].layout, layout_kind::any);
    }
    EXPECT_EQ((*now)[1].outputs[0].type, data_type::bf16);
}

// f32 becomes bf16, so the bf16 of the graph becomes f32: the cast stays one.
TEST(redescribe, keeps_a_cast_between_two_types) {
    const auto now = compiled_with({typed(10, data_type::bf16), typed(11, data_type::bf16, {8})},
                                   typed(14, data_type::f32));
    ASSERT_TRUE(now);
    EXPECT_EQ((*now)[0].outputs[0].type, data_type::bf16);
    EXPECT_EQ((*now)[1].inputs[0].type, data_type::bf16);
    EXPECT_EQ((*now)[1].outputs[0].type, data_type::f32);
    EXPECT_EQ((*now)[2].outputs[0].type, data_type::f32);
}

// A port has the type that is given for it, whatever its type becomes inside.
TEST(redescribe, takes_a_ports_own_type) {
    const auto now = compiled_with({typed(10, data_type::f16), typed(11, data_type::f32, {8})},
                                   typed(14, data_type::bf16));
    ASSERT_TRUE(now);
    EXPECT_EQ((*now)[0].inputs[0].type, data_type::f16);
    EXPECT_EQ((*now)[0].inputs[1].type, data_type::f32);
    EXPECT_EQ((*now)[0].outputs[0].type, data_type::f16);
}

// f32 becomes f16, which is cast to f32 only: so the bf16 between is f32, too.
TEST(redescribe, makes_no_cast_between_two_narrow_types) {
    const std::vector<op> there_and_back{
        typed(make(1, op_kind::type_cast, {typed(10, data_type::f32)}, 11), data_type::bf16),
        typed(make(2, op_kind::type_cast, {typed(11, data_type::bf16)}, 12), data_type::f32)};
    const auto now = redescribe(there_and_back, std::vector{typed(10, data_type::f16)},
                                std::vector{typed(12, data_type::f32)});
    ASSERT_TRUE(now);
    EXPECT_EQ((*now)[0].outputs[0].type, data_type::f32);
}

TEST(redescribe, names_a_tensor_that_is_not_given) {
    EXPECT_EQ(test::refusal<argument_error>(
                  [] { compiled_with({typed(10, data_type::f32)}, typed(14, data_type::bf16)); }),
              "an input (tensor 11) is not in the list given to compile");
}

TEST(redescribe, refuses_shapes_that_do_not_broadcast) {
    EXPECT_THROW(compiled_with({typed(10, data_type::f32, {2, 8}), typed(11, data_type::f32, {7})},
                               typed(14, data_type::bf16)),
                 shape_error);
}

} // namespace
} // namespace maskwise::graph
