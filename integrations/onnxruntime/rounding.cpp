#include "rounding.hpp"

#include <algorithm>
#include <set>

namespace maskwise::ort {
namespace {

// Operators that move elements, of which ONNX Runtime has kernels in f16 (seen in 1.24 to 1.32).
bool moves(const node& of) {
    return of.is_one_of({"Concat", "Flatten", "Gather", "GatherElements", "GatherND", "Reshape",
                         "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"});
}

// The same, but ONNX Runtime may take them out.
bool copies(const node& of) {
    return of.is_one_of({"Expand", "Identity", "ScatterElements", "ScatterND"});
}

// Products are sums of weights, in which a small one counts little. The others read what f16 holds.
bool may_read_weights(const reader& read) {
    const bool is_added = read.by->is("Gemm") && read.input == 2;
    return !is_added && read.by->is_one_of({"Gemm", "If", "Loop", "MatMul", "Scan"});
}

// Where 0 is another thing than a small number.
bool inverts(const reader& read) {
    const bool is_divisor = read.by->is("Div") && read.input == 1;
    return is_divisor || read.by->is_one_of({"Log", "Reciprocal"});
}

bool is_f16(const value& of) {
    return of.type == data_type::f16;
}

// One mover between operators of f32 runs in f32, two in a row do not.
bool moves_in_f16(const node& mover) {
    const auto is_moved = [](const value* in) { return is_f16(*in) && moves(*in->maker); };
    const auto stays = [](const value* out) {
        return out->is_output || std::ranges::any_of(out->readers, [](const reader& read) {
                   return moves(*read.by);
               });
    };
    return moves(mover) && (std::ranges::any_of(mover.inputs, is_moved) ||
                            std::ranges::any_of(mover.outputs, stays));
}

// Without those that move or copy. Those that cast are among them, and those behind them. Each
// operator is looked at once: in a chain of Concat(x, x) the ways double with every one.
std::vector<reader> readers_behind_moves(const value& of) {
    std::vector<const value*> moved{&of};
    std::set<const node*> movers_seen;
    std::vector<reader> found;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        for (const reader& read : moved[i]->readers) {
            const bool is_passed_on = moves(*read.by) || copies(*read.by);
            if (!is_passed_on) found.push_back(read);
            if ((is_passed_on || read.by->is("Cast")) && movers_seen.insert(read.by).second)
                moved.insert(moved.end(), read.by->outputs.begin(), read.by->outputs.end());
        }
    }
    return found;
}

} // namespace

bool rounding::is_exact(const value& of, int most_steps) {
    // an input, a constant, or from an outer graph
    if (!is_f16(of) || of.maker->theirs == nullptr) return true;
    const auto known = known_.find(of.maker);
    if (known != known_.end()) return known->second;
    return known_[of.maker] = most_steps > 0 && is_made_exact(*of.maker, most_steps - 1);
}

bool rounding::is_made_exact(const node& maker, int most_steps) {
    // What these make was never anything but f16.
    if (maker.is_one_of({"ConstantOfShape", "If", "Loop", "Scan"})) return true;
    if (!maker.is("Where") && !copies(maker) && !moves(maker)) return false;
    return moves_in_f16(maker) || std::ranges::all_of(maker.inputs, [&](const value* input) {
               return is_exact(*input, most_steps);
           });
}

bool rounding::is_exact_for(std::span<const node* const> nodes) {
    constexpr int most_steps = 64;
    return std::ranges::all_of(nodes, [&](const node* each) {
        return std::ranges::all_of(each->inputs, [&](const value* input) {
            return std::ranges::find(nodes, input->maker) != nodes.end() ||
                   is_exact(*input, most_steps);
        });
    });
}

bool needs_small_weights(const value& weights) {
    return is_f16(weights) && !std::ranges::all_of(readers_behind_moves(weights), may_read_weights);
}

bool divides(const value& by) {
    return is_f16(by) && std::ranges::any_of(readers_behind_moves(by), inverts);
}

} // namespace maskwise::ort
