#include "compare/compare.hpp"
#include "report/reporter.hpp"
#include "report/result_json.hpp"
#include "support/texts.hpp"
#include "unit/support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace maskwise::bench {
namespace {

graph one_op(const char* kind, data_type type) {
    graph g;
    g.ops = {make_op(kind, {make_tensor(0, type, {4})}, {make_tensor(1, type, {4})})};
    return g;
}

graph chain(data_type type) {
    graph g = one_op("Exp", type);
    g.ops.push_back(make_op("Tanh", {make_tensor(1, type, {4})}, {make_tensor(2, type, {4})}));
    return g;
}

tolerance for_output(const graph& g, bool moved = false) {
    return tolerance_for(g, g.ops.back().outputs[0], moved);
}

TEST(tolerance, moved_bits_and_integers_are_exact) {
    EXPECT_TRUE(for_output(one_op("Select", data_type::f32), true).exact);
    EXPECT_TRUE(for_output(one_op("GenIndex", data_type::s32)).exact);
    EXPECT_TRUE(for_output(one_op("GreaterEqual", data_type::boolean)).exact);
    EXPECT_FALSE(for_output(one_op("Exp", data_type::f32)).exact);
}

TEST(tolerance, follows_the_coarsest_type) {
    EXPECT_LT(for_output(one_op("Exp", data_type::f32)).relative, 1e-5);
    EXPECT_LT(for_output(chain(data_type::f32)).relative, 1e-4);
    EXPECT_FALSE(for_output(chain(data_type::f32)).norm_allowed);
    EXPECT_TRUE(for_output(chain(data_type::bf16)).norm_allowed);
    EXPECT_LT(for_output(chain(data_type::bf16)).relative, 0.03);
    graph relaxed = chain(data_type::f32);
    relaxed.fpmath_mode = "bf16";
    EXPECT_GT(for_output(relaxed).relative, 0.01);
    EXPECT_EQ(for_output(one_op("Quantize", data_type::u8)).absolute, 1.0);
}

TEST(compare, exact_means_every_bit) {
    tolerance exact;
    exact.exact = true;
    const tensor zero = from_doubles(data_type::f32, {1}, {0.0});
    const tensor minus_zero = from_doubles(data_type::f32, {1}, {-0.0});
    EXPECT_EQ(compare(zero, zero, exact).errors, 0U);
    const comparison c = compare(zero, minus_zero, exact);
    EXPECT_EQ(c.errors, 1U);
    EXPECT_TRUE(test::has(c.first, {"0x80000000"}));
}

TEST(compare, a_point_is_judged_by_itself_and_the_tensor) {
    tolerance t;
    t.relative = 1e-5;
    const tensor want = from_doubles(data_type::f64, {2, 2}, {1, 1, 1, 1e-9});
    const auto got = [](double last) {
        return from_doubles(data_type::f32, {2, 2}, {1, 1, 1, last});
    };
    EXPECT_EQ(compare(want, got(5e-6), t).errors, 0U); // small beside the tensor's size
    const comparison c = compare(want, got(1e-4), t);
    EXPECT_EQ(c.errors, 1U);
    EXPECT_TRUE(test::has(c.first, {"[1,1]"}));
}

TEST(compare, infinities_and_nan_must_agree) {
    tolerance t;
    t.relative = 1e-5;
    const double infinity = std::numeric_limits<double>::infinity();
    const auto one = [](data_type type, double x) { return from_doubles(type, {1}, {x}); };
    EXPECT_EQ(compare(one(data_type::f64, infinity), one(data_type::f32, infinity), t).errors, 0U);
    EXPECT_EQ(compare(one(data_type::f64, infinity), one(data_type::f32, -infinity), t).errors, 1U);
    EXPECT_EQ(compare(one(data_type::f64, 1), one(data_type::f32, std::nan("")), t).errors, 1U);
    EXPECT_EQ(
        compare(one(data_type::f64, std::nan("")), one(data_type::f32, std::nan("")), t).errors,
        0U);
    EXPECT_EQ(compare(one(data_type::f64, std::nan("")), one(data_type::f32, 1), t).errors, 1U);
}

TEST(compare, the_norm_forgives_few_small_misses_only) {
    tolerance t;
    t.relative = 0.01;
    t.norm_allowed = true;
    const std::vector<double> ones(4096, 1.0);
    const tensor want = from_doubles(data_type::f64, {4096}, ones);
    const auto errors = [&](std::size_t misses, double by) {
        std::vector<double> values = ones;
        for (std::size_t i = 0; i < misses; ++i) values[i] += by;
        return compare(want, from_doubles(data_type::f32, {4096}, values), t).errors;
    };
    EXPECT_EQ(errors(2, 0.05), 0U);
    EXPECT_EQ(errors(5, 0.05), 5U); // more than one in 1024
    EXPECT_EQ(errors(1, 0.17), 1U); // one point too far
    t.norm_allowed = false;
    EXPECT_EQ(errors(2, 0.05), 2U);
}

TEST(compare, another_shape_is_wrong) {
    EXPECT_EQ(compare(tensor(data_type::f32, {4}), tensor(data_type::f32, {5}), {}).errors, 1U);
}

TEST(report, results_survive_json) {
    case_result r;
    r.state = verdict::aborted;
    r.reason = "killed";
    r.perf = measurement{1, 2, 3, 4, 5, 6000000};
    r.partitions.push_back({{7, 8}, true, "maskwise"});
    r.selects.push_back({"bf16", {{2}, {2}, {}, {2}}, {{1}, {1}, {}, {1}}});
    const auto json = to_json(r);
    EXPECT_EQ(to_json(result_from_json(json)), json);
    EXPECT_DOUBLE_EQ(r.perf->gb_per_s(2), 3.0);
}

TEST(report, the_template_knows_the_words_of_the_driver) {
    case_result r;
    r.perf = measurement{1.5, 2, 3, 4, 5, 6000000};
    case_config c;
    c.file = "folder/name.json";
    EXPECT_EQ(format_measurement("%engine%,%name%,%-time%,%~time%,%0time%,%+time%,%~bw%", c, r),
              "cpu,name,1.5,2,3,4,3");
    EXPECT_EQ(format_measurement("def", c, r), "perf,cpu,--case=folder/name.json,1.5,3");
    EXPECT_THROW(format_measurement("%weather%", c, r), input_error);
}

} // namespace
} // namespace maskwise::bench
