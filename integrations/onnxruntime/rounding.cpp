#include "rounding.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace maskwise::ort {
namespace {

// Operators that move elements, of which ONNX Runtime has kernels in f16 (seen in 1.24 to 1.32).
constexpr std::string_view movers[] = {"Concat",   "Flatten",   "Gather",   "GatherElements",
                                       "GatherND", "Reshape",   "Slice",    "Split",
                                       "Squeeze",  "Transpose", "Unsqueeze"};
// The same, but ONNX Runtime may take them out.
constexpr std::string_view copies[] = {"Expand", "Identity", "ScatterElements", "ScatterND"};
// Products are sums of weights, in which a small one counts little. The others read what f16 holds.
constexpr std::string_view that_may_read_weights[] = {"Gemm", "If", "Loop", "MatMul", "Scan"};
// Where 0 is another thing than a small number; so it is in a divisor.
constexpr std::string_view inverses[] = {"Log", "Reciprocal"};
// What these make was never anything but f16.
constexpr std::string_view sources[] = {"ConstantOfShape", "If", "Loop", "Scan"};

template <class Names>
bool is_among(const runtime& with, const abi::node* node, const Names& names) {
    return std::ranges::any_of(
        names, [&](std::string_view name) { return is_operator(with, node, name); });
}

bool is_mover(const runtime& with, const abi::node* node) {
    return is_among(with, node, movers);
}

bool is_f16(const runtime& with, const abi::value_info* value) {
    return facts_of(with, value).element == abi::element_f16;
}

} // namespace

bool rounding::is_exact(const abi::value_info* value, int most_steps) {
    if (!is_f16(with_, value)) return true;
    const abi::node* const maker = maker_of(with_, value);
    if (maker == nullptr) return true; // an input, a constant, or from an outer graph
    const auto known = known_.find(maker);
    if (known != known_.end()) return known->second;
    return known_[maker] = most_steps > 0 && is_made_exact(maker, most_steps - 1);
}

bool rounding::is_made_exact(const abi::node* maker, int most_steps) {
    if (is_among(with_, maker, sources)) return true;
    if (!is_operator(with_, maker, "Where") && !is_among(with_, maker, copies) &&
        !is_mover(with_, maker))
        return false;
    if (moves_in_f16(maker)) return true;
    const auto inputs = inputs_of(with_, maker);
    return std::ranges::all_of(inputs,
                               [&](const auto* input) { return is_exact(input, most_steps); });
}

// One mover between operators of f32 runs in f32, two in a row do not.
bool rounding::moves_in_f16(const abi::node* mover) const {
    if (!is_mover(with_, mover)) return false;
    const auto inputs = inputs_of(with_, mover);
    const auto is_moved = [&](const abi::value_info* input) {
        return is_f16(with_, input) && is_mover(with_, maker_of(with_, input));
    };
    if (std::ranges::any_of(inputs, is_moved)) return true;
    const auto outputs = outputs_of(with_, mover);
    return std::ranges::any_of(outputs, [&](const abi::value_info* output) {
        const auto readers = readers_of(with_, output);
        return is_graph_output(with_, output) ||
               std::ranges::any_of(readers,
                                   [&](const reader& by) { return is_mover(with_, by.node); });
    });
}

// Each operator is looked at once: in a chain of Concat(x, x) the ways double with every one.
std::vector<reader> rounding::readers_behind_moves(const abi::value_info* value) const {
    std::vector<const abi::value_info*> moved{value};
    std::set<const abi::node*> movers_seen;
    std::vector<reader> found;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        for (const reader& by : readers_of(with_, moved[i])) {
            const bool casts = is_operator(with_, by.node, "Cast");
            const bool moves = is_mover(with_, by.node) || is_among(with_, by.node, copies);
            if (!moves) found.push_back(by);
            if ((!moves && !casts) || !movers_seen.insert(by.node).second) continue;
            const auto made = outputs_of(with_, by.node);
            moved.insert(moved.end(), made.begin(), made.end());
        }
    }
    return found;
}

bool rounding::needs_small_weights(const abi::value_info* weights) const {
    if (!is_f16(with_, weights)) return false;
    const auto readers = readers_behind_moves(weights);
    return !std::ranges::all_of(readers, [&](const reader& by) {
        const bool is_added = is_operator(with_, by.node, "Gemm") && by.input == 2;
        return !is_added && is_among(with_, by.node, that_may_read_weights);
    });
}

bool rounding::divides(const abi::value_info* value) const {
    if (!is_f16(with_, value)) return false;
    const auto readers = readers_behind_moves(value);
    return std::ranges::any_of(readers, [&](const reader& by) {
        return (is_operator(with_, by.node, "Div") && by.input == 1) ||
               is_among(with_, by.node, inverses);
    });
}

bool rounding::are_exact_for(std::span<const abi::node* const> nodes) {
    return std::ranges::all_of(nodes, [&](const abi::node* node) {
        const auto inputs = inputs_of(with_, node);
        return std::ranges::all_of(inputs, [&](const abi::value_info* input) {
            const bool is_inner = std::ranges::find(nodes, maker_of(with_, input)) != nodes.end();
            return is_inner || is_exact(input);
        });
    });
}

} // namespace maskwise::ort
