// Expressions and their machine code: nodes of any kind, for every instruction set that this
// machine can run expressions on. What is compiled must run as double precision does, between pages
// that may not be touched; only what needs too many registers may be refused.

#include "base/error.hpp"
#include "unit/jit/random_expression.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace {

using namespace maskwise;
using namespace maskwise::test;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
}

void check(generator& random) {
    static const auto targets = jit_targets();
    if (targets.empty()) return;
    const auto last = static_cast<std::int64_t>(targets.size()) - 1;
    const isa target = targets[static_cast<std::size_t>(draw(random, 0, last))];
    const jit::expression what = draw_expression(random);
    const trial how = draw_trial(random, what);
    try {
        const auto result = try_expression(random, what, how, target);
        if (!result) fail(result.message());
    } catch (const invalid_argument& refusal) {
        const std::string reason = refusal.what();
        if (reason.find("registers at once") == std::string::npos || what.nodes.size() <= 10)
            fail(reason + '\n' + to_string(what));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    generator random(std::span(data, size));
    check(random);
    return 0;
}
