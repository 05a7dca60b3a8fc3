#include "input/command_line.hpp"

#include "input/rewrite.hpp"
#include "input/rewrite_text.hpp"
#include "support/texts.hpp"
#include "unit/support.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace maskwise::bench {
namespace {

// A folder with a case and a batch file in it.
class command_line_test : public testing::Test {
protected:
    void SetUp() override {
        dir_ = std::filesystem::temp_directory_path() /
               ("maskwise-bench-" + std::to_string(::getpid()));
        std::filesystem::create_directories(dir_);
        write("case.json", select_text());
    }
    void TearDown() override { std::filesystem::remove_all(dir_); }

    std::string write(const std::string& name, const std::string& text) {
        std::ofstream(dir_ / name) << text;
        return (dir_ / name).string();
    }
    command_line parse(std::vector<std::string> arguments) {
        return parse_command_line(arguments, (dir_ / "bin" / "maskwise-bench").string());
    }
    std::string path(const char* name) { return (dir_ / name).string(); }
    // Whether the words are in the error.
    testing::AssertionResult is_refused(const std::vector<std::string>& arguments,
                                        const std::string& words) {
        return test::has(test::refusal<input_error>([&] { parse(arguments); }), {words});
    }

    std::filesystem::path dir_;
};

TEST_F(command_line_test, options_act_on_later_cases_until_reset) {
    const std::string one = "--case=" + path("case.json");
    const auto line = parse({one, "--mode=P", "--mb=4", one, "--reset", one});
    ASSERT_EQ(line.cases.size(), 3U);
    EXPECT_FALSE(line.cases[0].performance);
    EXPECT_TRUE(line.cases[1].performance);
    EXPECT_EQ(line.cases[1].mb, 4);
    EXPECT_EQ(line.cases[2], line.cases[0]);
}

TEST_F(command_line_test, list_options_multiply) {
    const auto line = parse({"--dt=f32,bf16", "--in-shapes=0:2x3,0:1x3,", "--mask=ones,zeros",
                             "--case=" + path("case.json")});
    ASSERT_EQ(line.cases.size(), 12U);
    EXPECT_EQ(line.cases[0].in_shapes, "0:2x3");
    EXPECT_EQ(line.cases[0].dt, "f32");
    EXPECT_EQ(line.cases[1].mask, "zeros");
    EXPECT_EQ(line.cases[11].in_shapes, "");
    EXPECT_EQ(line.cases[11].dt, "bf16");
}

TEST_F(command_line_test, repro_lines_parse_back) {
    const auto line =
        parse({"--mode=CP", "--dt=1:bf16+2:bf16", "--in-shapes=0:2x3*ba+1:-",
               "--op-attrs=140243871618688:auto_broadcast:none", "--mask=runs", "--owner=maskwise",
               "--expect=invalid_shape", "--in-place", "--cold-cache=all", "--fix-times-per-prb=3",
               "--max-ms-per-prb=50", "--expected-n-partitions=0", "--attr-fpmath=bf16:true",
               "--tensor-property=1:constant", "--fill=bits", "--mb=2", "--data=/a/b",
               "--case=" + path("case.json")});
    EXPECT_EQ(parse(repro_flags(line.cases[0])).cases[0], line.cases[0]);
}

TEST_F(command_line_test, batch_files_have_comments_continuation_and_neighbours) {
    write("batch",
          "# a comment\n--mode=L # another\n--in-shapes=0:2x3\\\n  +1:2x3 --case=case.json\n");
    const auto line = parse({"--batch=" + path("batch"), "--case=case.json"});
    ASSERT_EQ(line.cases.size(), 2U);
    EXPECT_EQ(line.cases[0].in_shapes, "0:2x3+1:2x3");
    EXPECT_TRUE(line.cases[1].list_only); // options outlive the batch
}

TEST_F(command_line_test, faults_are_one_clear_line) {
    EXPECT_TRUE(is_refused({"--foo=1"}, "unknown flag '--foo'"));
    EXPECT_TRUE(is_refused({"case.json"}, "is not a flag"));
    EXPECT_TRUE(is_refused({"--mode=X"}, "--mode: 'X'"));
    EXPECT_TRUE(is_refused({"--mode=CL"}, "--mode: 'CL'"));
    EXPECT_TRUE(is_refused({"--dt=f8"}, "--dt"));
    EXPECT_TRUE(is_refused({"--dt=f64"}, "--dt: 'f64'"));
    EXPECT_TRUE(is_refused({"--dt=f32,1:bf16"}, "cannot be mixed"));
    EXPECT_TRUE(is_refused({"--mask=stripes"}, "--mask: 'stripes'"));
    EXPECT_TRUE(is_refused({"--expect=bad_luck"}, "--expect"));
    EXPECT_TRUE(is_refused({"--case=nowhere.json"}, "cannot find case file"));
    write("loop", "--batch=loop\n");
    EXPECT_TRUE(is_refused({"--batch=" + path("loop")}, "nest deeper"));
}

TEST_F(command_line_test, an_option_behind_the_last_case_is_a_fault) {
    const std::string one = "--case=" + path("case.json");
    EXPECT_TRUE(is_refused({one, "--mode=P"}, "--mode=P stands behind the last --case"));
    write("batch", "--case=case.json\n--mb=4\n");
    EXPECT_TRUE(is_refused({"--batch=" + path("batch")}, "--mb=4 stands behind"));
    EXPECT_EQ(parse({"--batch=" + path("batch"), one}).cases[1].mb, 4);
    // What holds for the whole run may stand anywhere, and batches end by setting options back.
    EXPECT_EQ(parse({one, "--rounds=3", "-v1"}).run.rounds, 3);
    EXPECT_EQ(parse({"--dt=f32", one, "--dt="}).cases.size(), 1U);
    EXPECT_EQ(parse({one, "--mb=4", "--reset"}).cases.size(), 1U);
}

graph rewritten(const case_config& config) {
    graph g = parse_case(select_text(), "case.json");
    rewrite(g, config);
    return g;
}

TEST(rewrite, shapes_with_tags_and_strides_and_inferred_outputs) {
    case_config c;
    c.in_shapes = "0:4x1+1:2x4x5*bac+2:4x5*10x2";
    const graph g = rewritten(c);
    const op& o = g.ops[0];
    EXPECT_EQ(o.inputs[0].shape, (dims{4, 1}));
    EXPECT_EQ(o.inputs[1].strides, (dims{5, 10, 1}));
    EXPECT_EQ(o.inputs[2].strides, (dims{10, 2}));
    EXPECT_EQ(o.outputs[0].shape, (dims{2, 4, 5}));
    EXPECT_TRUE(o.outputs[0].strides.empty());
}

TEST(rewrite, an_output_may_be_given_even_wrongly) {
    case_config c;
    c.in_shapes = "1:2x3+2:2x3+3:3x2";
    EXPECT_EQ(rewritten(c).ops[0].outputs[0].shape, (dims{3, 2}));
}

TEST(rewrite, types_leave_the_mask_alone) {
    case_config c;
    c.dt = "f16";
    const graph g = rewritten(c);
    EXPECT_EQ(g.ops[0].inputs[0].dtype, data_type::boolean);
    EXPECT_EQ(g.ops[0].inputs[1].dtype, data_type::f16);
    EXPECT_EQ(g.ops[0].outputs[0].dtype, data_type::f16);
    c.dt = "1:bf16";
    EXPECT_EQ(rewritten(c).ops[0].inputs[2].dtype, data_type::f32);
}

TEST(rewrite, mb_keeps_rows_apart) {
    case_config c;
    c.mb = 3;
    graph g = parse_case(select_text(), "case.json");
    for_each_tensor(g, [](logical_tensor& t) {
        if (t.id == 1) t.strides = {1, 2}; // permuted: the leading dim is the inner one
    });
    rewrite(g, c);
    EXPECT_EQ(g.ops[0].inputs[1].shape, (dims{3, 3}));
    EXPECT_EQ(g.ops[0].outputs[0].shape, (dims{3, 3}));
    EXPECT_GE(g.ops[0].inputs[1].strides[0], 5);
}

TEST(rewrite, unknown_ids_and_values_are_named) {
    const auto is_refused = [](auto set, const std::string& words) {
        case_config c;
        c.file = "case.json";
        set(c);
        return test::has(test::refusal<input_error>([&] { rewritten(c); }), {words});
    };
    EXPECT_TRUE(is_refused([](auto& c) { c.in_shapes = "9:2"; }, "no tensor 9"));
    EXPECT_TRUE(is_refused([](auto& c) { c.op_attrs = "1:axis:0"; }, "no op 1"));
    EXPECT_TRUE(is_refused([](auto& c) { c.in_shapes = "0:2x-3"; }, "negative"));
    EXPECT_TRUE(is_refused([](auto& c) { c.in_shapes = "0:2x3*abc"; }, "tag 'abc'"));
    EXPECT_TRUE(is_refused([](auto& c) { c.in_shapes = "0=2x3"; }, "ID:VALUE"));
    EXPECT_TRUE(is_refused([](auto& c) { c.attr_fpmath = "f8"; }, "fpmath"));
    EXPECT_TRUE(is_refused([](auto& c) { c.op_kind = "140243871618688:Nothing"; }, "Nothing"));
}

TEST(rewrite, an_op_can_be_replaced_and_removed) {
    const auto t = [](std::size_t id) { return make_tensor(id, data_type::f32, {4}); };
    graph g;
    g.ops = {make_op("Exp", {t(0)}, {t(1)}), make_op("Tanh", {t(1)}, {t(2)})};
    g.ops[1].id = 1;
    case_config c;
    c.op_kind = "0:undef+1:Square";
    rewrite(g, c);
    ASSERT_EQ(g.ops.size(), 1U);
    EXPECT_EQ(g.ops[0].kind, "Square");
    EXPECT_EQ(g.ops[0].inputs[0].id, 0U);
}

} // namespace
} // namespace maskwise::bench
