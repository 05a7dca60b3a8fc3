// Graphs around a Select as they are merged or become composites, compiled with other shapes,
// types and layouts than at add_op: what oneDNN alone takes the plugin takes, and both compute the
// same, within bounds that follow from the operators.

#include "graph_abi/api.hpp"
#include "graph_abi/chain.hpp"
#include "graph_abi/chain_oracle.hpp"
#include "graph_abi/chain_run.hpp"
#include "graph_abi/session.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <atomic>
#include <cstdio>
#include <optional>
#include <span>
#include <string>

namespace maskwise::fuzz {
namespace {

// Tells in the end how much was tried.
struct counter {
    long graphs = 0, merged = 0, compared = 0, refused = 0, only_own = 0;
    long other_is_wrong = 0;

    ~counter() {
        std::fprintf(
            stderr,
            "%ld graphs, %ld partitions of several operators, %ld graphs compared, %ld "
            "that both refuse, %ld that oneDNN alone refuses, %ld that it computes wrongly\n",
            graphs, merged, compared, refused, only_own, other_is_wrong);
    }
} counted;

// oneDNN keeps what it compiled in caches. One it leaves inconsistent where it throws; in the other
// layouts are the same that differ in strides of extents of 1, for which 3.13 makes other code.
void begin() {
    static const bool are_off =
        dnnl_graph_set_compiled_partition_cache_capacity(0) == dnnl_success &&
        dnnl_set_primitive_cache_capacity(0) == dnnl_success;
    if (!are_off) fail("oneDNN's caches cannot be switched off");
}

// Nothing where the plugin is right, or wrong first where oneDNN computes on both sides.
std::optional<wrong_tensor> find_wrong(const chain_result& own, const chain_description& chain,
                                       const tensor_bytes& inputs) {
    auto wrong = compare_exactly(own, chain, inputs);
    if (wrong && !own.selected.contains(wrong->id)) wrong.reset();
    return wrong;
}

// Where both differ the operators' definitions decide. oneDNN's own faults, which are the plugin's
// wherever oneDNN compiles, are not held against it.
void settle(const chain_result& own, const chain_result& other, const chain_description& chain,
            const tensor_bytes& inputs) {
    const auto wrong = find_wrong(own, chain, inputs);
    if (wrong && !compare_exactly(other, chain, inputs))
        fail(wrong->what + '\n' + to_string(chain));
    ++counted.other_is_wrong;
}

void check_alone(const chain_result& own, const chain_description& chain,
                 const tensor_bytes& inputs) {
    ++counted.only_own;
    const auto wrong = find_wrong(own, chain, inputs);
    if (wrong) fail("oneDNN alone does not run it; " + wrong->what + '\n' + to_string(chain));
}

void check_results(const chain_result& own, const chain_result& other,
                   const chain_description& chain, const tensor_bytes& inputs) {
    const std::string about = '\n' + to_string(chain);
    if (!own.fault.empty() && own.fault != other.fault) fail(own.fault + about);
    const bool other_has_run = other.refusal.empty() && other.fault.empty();
    if (!own.refusal.empty() && other_has_run)
        fail("oneDNN alone runs it, the plugin: " + own.refusal + about);
    if (!other_has_run && own.refusal.empty()) check_alone(own, chain, inputs);
    if (!other_has_run && !own.refusal.empty()) ++counted.refused;
    if (!compare(own, other, chain).empty()) settle(own, other, chain, inputs);
    if (own.refusal.empty() && other_has_run) ++counted.compared;
}

std::atomic<bool> is_alone = false;

chain_result run_alone(const session& other, const chain_description& chain,
                       const tensor_bytes& inputs) {
    is_alone = true;
    auto result = run_chain(other, chain, inputs);
    is_alone = false;
    return result;
}

void check(generator& random) {
    begin();
    const auto chain = test::one_in(random, 3) ? draw_attention(random) : draw_chain(random);
    const auto inputs = draw_inputs(random, chain);
    ++counted.graphs;
    session own(with_plugin()), other(real());
    own.build(chain.graph);
    other.build(chain.graph);
    const std::string wrong = complain(own, other, chain.graph);
    if (!wrong.empty()) fail(wrong + '\n' + to_string(chain));
    const auto alone = run_alone(other, chain, inputs);
    const auto result = run_chain(own, chain, inputs);
    counted.merged += result.merged;
    check_results(result, alone, chain, inputs);
    other.destroy();
    own.destroy();
}

} // namespace
} // namespace maskwise::fuzz

// oneDNN ends on some graphs that it takes.
extern "C" bool is_running_foreign_code() {
    return maskwise::fuzz::is_alone;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    maskwise::fuzz::generator random(std::span(data, size));
    maskwise::fuzz::check(random);
    return 0;
}
