#include "jit/expression_code.hpp"

#include "base/error.hpp"
#include "base/first_use.hpp"
#if defined(__x86_64__)
#include "jit/generator_x86.hpp"
#endif

#include <algorithm>
#include <atomic>

namespace maskwise::jit {
namespace {

[[maybe_unused]] constexpr std::size_t most_code_bytes = std::size_t{256} << 10;

[[maybe_unused]] std::string next_name(isa target) {
    static std::atomic<int> next{0};
    return "maskwise_expression_" + std::to_string(next++) + '_' + std::string(to_string(target));
}

void check_inputs(const expression& what, std::size_t given) {
    std::size_t inputs = 0;
    for (const node& each : what.nodes) inputs += each.kind == node_kind::input ? 1U : 0U;
    if (inputs != given)
        throw invalid_argument("an expression of " + std::to_string(inputs) + " inputs, " +
                               std::to_string(given) + " given");
}

#if defined(__x86_64__)
std::shared_ptr<const expression_code> generate(const expression& what,
                                                std::span<const column_class> inputs,
                                                store_policy stores, isa target) {
    std::vector<std::byte> code(most_code_bytes);
    try {
        generator made(what, inputs, stores, target, code);
        const std::size_t bytes = made.generate();
        return std::make_shared<const expression_code>(std::span(code).first(bytes),
                                                       next_name(target));
    } catch (const Xbyak::Error& failure) {
        throw invalid_argument("the expression cannot be compiled: " + std::string(failure.what()));
    }
}
#else
std::shared_ptr<const expression_code> generate(const expression&, std::span<const column_class>,
                                                store_policy, isa) {
    return nullptr; // can_compile() is true nowhere
}
#endif

} // namespace

bool can_compile(isa target) {
    if ((target != isa::avx2 && target != isa::avx512) || !code_can_be_executed()) return false;
    const auto& supported = at_first_use<[] { return supported_isas(native_cpu()); }>();
    return std::find(supported.begin(), supported.end(), target) != supported.end();
}

std::shared_ptr<const expression_code> compile(const expression& what,
                                               std::span<const column_class> inputs,
                                               store_policy stores, isa target) {
    validate(what);
    check_inputs(what, inputs.size());
    if (!can_compile(target))
        throw invalid_argument("expressions are compiled for avx2 and avx512, not for " +
                               std::string(to_string(target)));
    return generate(what, inputs, stores, target);
}

} // namespace maskwise::jit
