#include "chain_check.hpp"

#include "api.hpp"
#include "chain.hpp"
#include "chain_oracle.hpp"
#include "chain_run.hpp"
#include "session.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace maskwise::fuzz {
namespace {

// An exception leaves oneDNN's cache of compiled partitions inconsistent. oneDNN's primitive cache
// ignores strides along extents of 1, although oneDNN 3.13's generated code depends on these
// strides.
void switch_caches_off() {
    static const bool are_off =
        dnnl_graph_set_compiled_partition_cache_capacity(0) == dnnl_success &&
        dnnl_set_primitive_cache_capacity(0) == dnnl_success;
    if (!are_off) fail("oneDNN's caches cannot be switched off");
}

// Compares one library's tensors with the operators' definitions.
class judge {
public:
    judge(const chain_description& chain, const tensor_bytes& inputs, const chain_result& side)
        : oracle_(chain, inputs), side_(side) {}

    // Returns the fault of tensor `id` of `other`, or "". `other` was computed from this library's
    // tensors.
    std::string find_wrong(const chain_result& other, std::size_t id) const {
        bool loses_nans = false;
        return oracle_.find_wrong({other.tensors.at(id), other.bytes.at(id)}, loses_nans);
    }

    std::string find_wrong(std::size_t id) const { return find_wrong(side_, id); }

    // If the tensor is wrong, the oracle computes later tensors from the wrong values.
    void continue_from(std::size_t id) {
        const laid_out stored{side_.tensors.at(id), side_.bytes.at(id)};
        bool loses_nans = false;
        if (!oracle_.find_wrong(stored, loses_nans).empty() || loses_nans) oracle_.assume(stored);
        tensors_without_nans += loses_nans ? 1 : 0;
    }

    long tensors_without_nans = 0;

private:
    chain_oracle oracle_;
    const chain_result& side_;
};

// Compares the results of both libraries for one chain.
class comparison {
public:
    comparison(const session& alone, const chain_description& chain, const tensor_bytes& inputs,
               const chain_result& plugin_side, const chain_result& other, tally& counted)
        : alone_(alone), chain_(chain), inputs_(inputs), plugin_(plugin_side), other_(other),
          counted_(counted) {}

    void run() {
        if (!plugin_.fault.empty() && plugin_.fault != other_.fault) end(plugin_.fault);
        const bool plugin_has_run = plugin_.refusal.empty();
        const bool other_has_run = other_.refusal.empty() && other_.fault.empty();
        if (!plugin_has_run && other_has_run)
            end("oneDNN alone runs the graph, the plugin does not: " + plugin_.refusal);
        if (std::any_of(plugin_.written.begin(), plugin_.written.end(),
                        [this](std::size_t id) { return !are_alike(id); }))
            decide();
        ++(!plugin_has_run ? counted_.refused
           : other_has_run ? counted_.compared
                           : counted_.only_own);
    }

private:
    [[noreturn]] void end(const std::string& reason) const {
        fail(reason + '\n' + to_string(chain_));
    }

    bool are_alike(std::size_t id) const {
        return other_.written.contains(id) &&
               difference({plugin_.tensors.at(id), plugin_.bytes.at(id)},
                          {other_.tensors.at(id), other_.bytes.at(id)}, chain_.tolerance.at(id))
                   .empty();
    }

    // Whether oneDNN alone is wrong, too, on the plugin's inputs. Before oneDNN 3.8, Select turns
    // infinities into NaN, which hides wrong products. oneDNN 3.13 reads outside a broadcast
    // operand if other operands are transposed.
    bool is_wrong_alone(const judge& plugin_side, std::size_t id) const {
        if (plugin_.owned.contains(id)) return false;
        const auto again = repeat_partition(alone_, chain_, plugin_, other_, id);
        return again.refusal.empty() && again.fault.empty() &&
               !plugin_side.find_wrong(again, id).empty();
    }

    // Judges tensors in order of computation. Excuses a wrong tensor if oneDNN alone is wrong, too,
    // on its own or on the plugin's inputs. Also excuses a tensor that oneDNN computed only with
    // the plugin loaded.
    void decide() {
        judge plugin_side(chain_, inputs_, plugin_), other(chain_, inputs_, other_);
        for (const std::size_t id : plugin_.written) {
            decide(plugin_side, other, id);
            plugin_side.continue_from(id);
            if (other_.written.contains(id)) other.continue_from(id);
        }
        counted_.without_nans += plugin_side.tensors_without_nans;
    }

    void decide(const judge& plugin_side, const judge& other, std::size_t id) {
        const bool other_has_it = other_.written.contains(id);
        const std::string wrong = plugin_side.find_wrong(id);
        bool other_is_wrong = other_has_it && !other.find_wrong(id).empty();
        if (!wrong.empty() && !other_has_it && !plugin_.owned.contains(id)) {
            ++counted_.unreached_are_wrong;
            return;
        }
        const bool is_open = !wrong.empty() && !other_is_wrong && !are_alike(id);
        if (is_open && other_has_it) other_is_wrong = is_wrong_alone(plugin_side, id);
        if (is_open && !other_is_wrong)
            end((other_has_it ? "oneDNN alone is right; "
                              : "oneDNN alone does not compute this tensor; ") +
                wrong);
        if (other_is_wrong) ++(wrong.empty() ? counted_.other_is_wrong : counted_.both_are_wrong);
    }

    const session& alone_;
    const chain_description& chain_;
    const tensor_bytes& inputs_;
    const chain_result &plugin_, &other_;
    tally& counted_;
};

bool has_nans(const chain_description& chain, const tensor_bytes& inputs) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
        const auto& tensor = chain.now.at(input.first);
        indices index(static_cast<std::size_t>(tensor.ndims));
        bool is_nan = false;
        do is_nan |= std::isnan(load({tensor, input.second}, index));
        while (step(index, tensor));
        return is_nan;
    });
}

bool has_property(const chain_description& chain, dnnl_graph_tensor_property_t property) {
    return std::any_of(chain.now.begin(), chain.now.end(),
                       [=](const auto& each) { return each.second.property == property; });
}

void count(const chain_description& chain, const tensor_bytes& inputs,
           const chain_result& plugin_side, tally& counted) {
    ++counted.graphs;
    counted.merged += plugin_side.merged;
    counted.composites += plugin_side.composites;
    if (!plugin_side.refusal.empty()) return;
    counted.with_nans += has_nans(chain, inputs) ? 1 : 0;
    counted.with_constants += has_property(chain, dnnl_graph_tensor_property_constant) ? 1 : 0;
    counted.with_scalars += has_property(chain, host_scalar) ? 1 : 0;
}

void abort_if_planted() {
    if (planted("ends") || (planted("ends_beside_the_plugin") && plugin_is_loaded())) std::abort();
}

void spoil(chain_result& side, std::size_t id) {
    const auto& tensor = side.tensors.at(id);
    if (test::width_bytes(tensor) > 1) store(side.bytes.at(id).data(), tensor.data_type, 9e4F);
}

// Spoils a different tensor of each library, because one library's fault must not excuse the
// other's.
void spoil_if_planted(chain_result& plugin_side, chain_result& other) {
    if (!planted("wrong_tensors") || plugin_side.written.empty()) return;
    spoil(plugin_side, *plugin_side.written.rbegin());
    if (other.written.size() > 1) spoil(other, *other.written.begin());
}

} // namespace

void check_chain(generator& random, generator& later, tally& counted, volatile bool& is_alone) {
    switch_caches_off();
    const auto chain =
        test::one_in(random, 3) ? draw_attention(random, later) : draw_chain(random, later);
    const auto inputs = draw_inputs(random, later, chain);
    session plugin_side(with_plugin()), other(real());
    plugin_side.build(chain.graph);
    other.build(chain.graph);
    const std::string wrong = complain(plugin_side, other, chain.graph);
    if (!wrong.empty()) fail(wrong + '\n' + to_string(chain));
    is_alone = true;
    abort_if_planted();
    auto alone = run_chain(other, chain, inputs);
    is_alone = false;
    if (plugin_is_loaded()) {
        auto result = run_chain(plugin_side, chain, inputs);
        spoil_if_planted(result, alone);
        comparison(other, chain, inputs, result, alone, counted).run();
        count(chain, inputs, result, counted);
    }
    other.destroy();
    plugin_side.destroy();
}

} // namespace maskwise::fuzz
