#include "rounding.hpp"

#include <algorithm>
#include <set>

namespace maskwise::ort {
namespace {

// Operators that move elements and that have f16 kernels in ONNX Runtime (1.24 to 1.32).
bool moves(const node& node) {
    return node.is_one_of({"Concat", "Flatten", "Gather", "GatherElements", "GatherND", "Reshape",
                           "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"});
}

// Operators that move elements and that ONNX Runtime may remove.
bool copies(const node& node) {
    return node.is_one_of({"Expand", "Identity", "ScatterElements", "ScatterND"});
}

// Whether a reader of a Softmax's results (weights) tolerates rounding to f16. In a product, a
// small weight has little effect. The operators If, Loop and Scan read f16 even without Maskwise.
bool may_read_weights(const reader& read) {
    const bool is_added = read.node->is("Gemm") && read.input == 2;
    return !is_added && read.node->is_one_of({"Gemm", "If", "Loop", "MatMul", "Scan"});
}

// Whether the reader maps 0 and a small number to very different results.
bool inverts(const reader& read) {
    const bool is_divisor = read.node->is("Div") && read.input == 1;
    return is_divisor || read.node->is_one_of({"Log", "Reciprocal"});
}

bool is_f16(const value& value) {
    return value.type == data_type::f16;
}

// Whether ONNX Runtime runs the mover in f16: another mover precedes or follows, or a result is a
// graph output. A single mover between operators that compute in f32 runs in f32.
bool moves_in_f16(const node& mover) {
    const auto is_moved = [](const value* in) { return is_f16(*in) && moves(*in->producer); };
    const auto stays = [](const value* out) {
        return out->is_output || std::ranges::any_of(out->readers, [](const reader& read) {
                   return moves(*read.node);
               });
    };
    return moves(mover) && (std::ranges::any_of(mover.inputs, is_moved) ||
                            std::ranges::any_of(mover.outputs, stays));
}

// Returns the readers of a value. Looks past operators that move, copy or cast the value. A cast is
// also a reader. Visits each operator once, because each operator in a chain of Concat(x, x)
// doubles the number of paths.
std::vector<reader> readers_past_moves(const value& value) {
    std::vector<const struct value*> moved{&value};
    std::set<const node*> movers_seen;
    std::vector<reader> readers;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        for (const reader& read : moved[i]->readers) {
            const bool is_passed_on = moves(*read.node) || copies(*read.node);
            if (!is_passed_on) readers.push_back(read);
            if ((is_passed_on || read.node->is("Cast")) && movers_seen.insert(read.node).second)
                moved.insert(moved.end(), read.node->outputs.begin(), read.node->outputs.end());
        }
    }
    return readers;
}

} // namespace

bool rounding::is_exact(const value& value, int max_depth) {
    // Inputs, constants and an outer graph's values are exact.
    if (!is_f16(value) || value.producer->handle == nullptr) return true;
    const auto known = known_.find(value.producer);
    if (known != known_.end()) return known->second;
    return known_[value.producer] =
               max_depth > 0 && is_produced_exactly(*value.producer, max_depth - 1);
}

bool rounding::is_produced_exactly(const node& producer, int max_depth) {
    // ONNX Runtime also produces the results of these operators in f16.
    if (producer.is_one_of({"ConstantOfShape", "If", "Loop", "Scan"})) return true;
    if (!producer.is("Where") && !copies(producer) && !moves(producer)) return false;
    return moves_in_f16(producer) || std::ranges::all_of(producer.inputs, [&](const value* input) {
               return is_exact(*input, max_depth);
           });
}

bool rounding::is_exact_for(std::span<const node* const> nodes) {
    constexpr int max_depth = 64;
    return std::ranges::all_of(nodes, [&](const node* each) {
        return std::ranges::all_of(each->inputs, [&](const value* input) {
            return std::ranges::find(nodes, input->producer) != nodes.end() ||
                   is_exact(*input, max_depth);
        });
    });
}

bool needs_small_weights(const value& weights) {
    return is_f16(weights) && !std::ranges::all_of(readers_past_moves(weights), may_read_weights);
}

bool is_inverted(const value& value) {
    return is_f16(value) && std::ranges::any_of(readers_past_moves(value), inverts);
}

} // namespace maskwise::ort
