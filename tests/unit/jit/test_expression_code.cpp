// What surrounds the machine code: pages, names and dumps, and what is refused.

#include "base/error.hpp"
#include "jit/expression_run.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace maskwise::test {
namespace {

using jit::expression;
using jit::node;
using jit::node_kind;

constexpr std::array<int, 3> none{-1, -1, -1};

expression absolute() {
    expression what;
    what.add({node_kind::input, none, data_type::f32});
    what.add({node_kind::abs, {0, -1, -1}});
    what.result = data_type::f32;
    return what;
}

std::string refusal_of(const expression& what) {
    const std::vector<column_class> inputs(
        static_cast<std::size_t>(
            std::count_if(what.nodes.begin(), what.nodes.end(),
                          [](const node& each) { return each.kind == node_kind::input; })),
        column_class::unit);
    try {
        compile(what, inputs, store_policy::plain, jit_targets().back());
    } catch (const invalid_argument& refusal) {
        return refusal.what();
    }
    return "";
}

// The permissions of the mapping that holds the address, "r-xp"; empty where there is none. Asserts
// on the way that nothing in the process is writable and executable at once.
std::string permissions_at(const void* address) {
    std::ifstream maps("/proc/self/maps");
    std::string found;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t first = 0, last = 0;
        char dash = 0;
        std::string permissions;
        std::istringstream(line) >> std::hex >> first >> dash >> last >> permissions;
        EXPECT_FALSE(permissions[1] == 'w' && permissions[2] == 'x') << line;
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (at >= first && at < last) found = permissions;
    }
    return found;
}

class expression_code_test : public testing::TestWithParam<isa> {};

TEST_P(expression_code_test, pages_are_never_writable_and_executable) {
    const column_class moves[] = {column_class::unit};
    auto code = compile(absolute(), moves, store_policy::plain, GetParam());
    const void* at = reinterpret_cast<const void*>(code->run());
    EXPECT_EQ(permissions_at(at), "r-xp");
    code.reset();
    EXPECT_NE(permissions_at(at), "r-xp");
}

TEST_P(expression_code_test, keeps_the_bits_of_selected_halves) {
    for (const data_type type : {data_type::bf16, data_type::f16}) {
        expression what;
        what.add({node_kind::input, none, data_type::boolean});
        what.add({node_kind::input, none, type});
        what.add({node_kind::tanh, {1, -1, -1}});
        what.add({node_kind::select, {0, 1, 2}});
        what.result = type;
        // Signalling NaNs of both signs, both zeros, a denormal.
        const std::uint16_t bits[] = {0x7F81, 0xFF81, 0x7C01, 0xFC01, 0x8000, 0x0000, 0x0001};
        const std::vector<std::uint8_t> cond(std::size(bits), 0x80);
        std::uint16_t dst[std::size(bits)] = {};
        const std::vector<column_class> inputs(2, column_class::unit);
        jit::expression_tile tile{};
        tile.at[0] = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(cond.data()));
        tile.at[1] = reinterpret_cast<std::byte*>(const_cast<std::uint16_t*>(bits));
        tile.at[jit::dst_operand] = reinterpret_cast<std::byte*>(dst);
        tile.rows = 1;
        tile.columns = std::size(bits);
        compile(what, inputs, store_policy::plain, GetParam())->run()(&tile);
        EXPECT_EQ(std::memcmp(bits, dst, sizeof bits), 0) << to_string(type);
    }
}

TEST_P(expression_code_test, is_dumped_and_named_on_demand) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("maskwise_jit_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    setenv("MASKWISE_JIT_DUMP", folder.c_str(), 1);
    setenv("MASKWISE_JIT_PERF", "1", 1);
    const column_class moves[] = {column_class::unit};
    const auto code = compile(absolute(), moves, store_policy::plain, GetParam());
    unsetenv("MASKWISE_JIT_DUMP");
    unsetenv("MASKWISE_JIT_PERF");

    std::ifstream dump(folder / (code->memory().name() + ".bin"), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(dump)), {});
    ASSERT_EQ(bytes.size(), code->memory().size());
    EXPECT_EQ(std::memcmp(bytes.data(), code->memory().begin(), bytes.size()), 0);

    const std::string map_name = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    std::ifstream map(map_name);
    std::ostringstream expected;
    expected << std::hex << reinterpret_cast<std::uintptr_t>(code->memory().begin()) << ' '
             << code->memory().size() << ' ' << code->memory().name();
    std::string line, last;
    while (std::getline(map, line)) last = line;
    EXPECT_EQ(last, expected.str());
    std::filesystem::remove(map_name);
    std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(every_target, expression_code_test, testing::ValuesIn(jit_targets()),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

TEST(expression_refusals, say_why) {
    expression forward = absolute();
    forward.nodes[1].arguments[0] = 1;
    EXPECT_EQ(refusal_of(forward), "node 1, abs of type undef: argument 1 is no earlier node");

    expression typed = absolute();
    typed.nodes[0].type = data_type::i32;
    EXPECT_EQ(refusal_of(typed), "node 0, input of type i32: the type is not one of its types");

    expression boolean = absolute();
    boolean.nodes[0].type = data_type::boolean;
    EXPECT_EQ(refusal_of(boolean), "node 1, abs of type undef: argument 0 is a truth value");

    expression quantized = absolute();
    quantized.result = data_type::u8;
    EXPECT_EQ(refusal_of(quantized), "node 1, abs of type undef: dst cannot hold it as u8");

    expression cond = absolute();
    cond.add({node_kind::select, {1, 0, 1}});
    EXPECT_EQ(refusal_of(cond), "node 2, select of type undef: argument 1 is a number");

    expression scale = absolute();
    scale.add({node_kind::quantize, {1, -1, -1}, data_type::u8});
    EXPECT_EQ(refusal_of(scale), "node 2, quantize of type u8: the scale 0.000000 is not positive");

    expression wide = absolute();
    for (std::size_t i = 0; i < jit::max_inputs; ++i)
        wide.add({node_kind::input, none, data_type::f32});
    EXPECT_EQ(refusal_of(wide), "node 9, input of type f32: more than 8 inputs");
    EXPECT_EQ(refusal_of({}), "an expression has 1 to 64 nodes, not 0");
}

TEST(expression, prints_its_nodes_with_their_numbers) {
    expression what;
    const int input = what.add({node_kind::input, none, data_type::bf16});
    const int half = what.add({node_kind::constant, none, {}, 0.5F});
    const int sum = what.add({node_kind::add, {input, half, -1}});
    const int leaky = what.add({node_kind::leaky_relu, {sum, -1, -1}, {}, 0.25F});
    const int clamped = what.add({node_kind::clamp, {leaky, -1, -1}, {}, -1.0F, 6.0F});
    what.add({node_kind::quantize, {clamped, -1, -1}, data_type::u8, 0.125F, 3.0F});
    what.result = data_type::u8;
    EXPECT_EQ(to_string(what),
              "0=input():bf16 1=constant(0.5) 2=add(0,1) 3=leaky_relu(2,0.25) 4=clamp(3,-1,6) "
              "5=quantize(4,0.125,3):u8 -> u8");
}

// Constants stay in registers for the whole loop.
TEST(expression_refusals, count_registers) {
    expression what;
    int sum = what.add({node_kind::input, none, data_type::f32});
    for (int i = 0; i < 31; ++i) {
        const int constant = what.add({node_kind::constant, none, {}, static_cast<float>(i)});
        sum = what.add({node_kind::add, {sum, constant, -1}});
    }
    what.result = data_type::f32;
    EXPECT_NE(refusal_of(what).find("vector registers at once"), std::string::npos);
}

TEST(expression_refusals, name_the_instruction_set) {
    const column_class moves[] = {column_class::unit};
    for (const isa target : {isa::scalar, isa::sse4, isa::neon}) {
        EXPECT_FALSE(jit::can_compile(target));
        EXPECT_THROW(compile(absolute(), moves, store_policy::plain, target), invalid_argument);
    }
    EXPECT_THROW(compile(absolute(), {}, store_policy::plain, jit_targets().back()),
                 invalid_argument);
}

} // namespace
} // namespace maskwise::test
