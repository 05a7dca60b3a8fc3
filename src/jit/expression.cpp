#include "jit/expression.hpp"

#include "base/error.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace maskwise::jit {
namespace {

struct kind_facts {
    std::string_view name;
    std::size_t arguments;
};

constexpr kind_facts facts[] = {
    {"input", 0},
    {"constant", 0},
#define MASKWISE_NODE(name, arguments) {#name, arguments},
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
};

const kind_facts& facts_of(node_kind kind) {
    return facts[static_cast<std::size_t>(kind)];
}

bool is_truth(const node& what) {
    return what.kind == node_kind::greater_equal ||
           (what.kind == node_kind::input && what.type == data_type::boolean);
}

[[noreturn]] void refuse(const expression& what, std::size_t number, const std::string& reason) {
    const node& at = what.nodes[number];
    throw invalid_argument("node " + std::to_string(number) + ", " +
                           std::string(to_string(at.kind)) + " of type " +
                           std::string(to_string(at.type)) + ": " + reason);
}

void check_type(const expression& what, std::size_t number) {
    const node& at = what.nodes[number];
    bool fits = true;
    if (at.kind == node_kind::input)
        fits = computes_in_f32(at.type) || at.type == data_type::boolean;
    if (at.kind == node_kind::type_cast) fits = computes_in_f32(at.type);
    if (at.kind == node_kind::quantize) fits = is_8_bit_integer(at.type);
    if (!fits) refuse(what, number, "the type is not one of its types");
    if (at.kind == node_kind::quantize && !(std::isfinite(at.alpha) && at.alpha > 0))
        refuse(what, number, "the scale " + std::to_string(at.alpha) + " is not positive");
}

void check_arguments(const expression& what, std::size_t number) {
    const node& at = what.nodes[number];
    for (std::size_t i = 0; i < argument_count(at.kind); ++i) {
        const int argument = at.arguments[i];
        if (argument < 0 || static_cast<std::size_t>(argument) >= number)
            refuse(what, number, "argument " + std::to_string(argument) + " is no earlier node");
        const bool wants_truth = at.kind == node_kind::select && i == 0;
        if (is_truth(what.nodes[static_cast<std::size_t>(argument)]) != wants_truth)
            refuse(what, number,
                   "argument " + std::to_string(argument) +
                       (wants_truth ? " is a number" : " is a truth value"));
    }
}

// i8 and u8 hold what quantize made, whichever side a select takes.
bool is_quantized(const expression& what) {
    std::vector<bool> quantized;
    for (const node& at : what.nodes) {
        const auto argument = [&](std::size_t i) {
            return quantized[static_cast<std::size_t>(at.arguments[i])];
        };
        quantized.push_back(at.kind == node_kind::select
                                ? argument(1) && argument(2)
                                : at.kind == node_kind::quantize && at.type == what.result);
    }
    return quantized.back();
}

void check_result(const expression& what) {
    const std::size_t root = what.nodes.size() - 1;
    if (is_truth(what.nodes[root])) refuse(what, root, "dst cannot hold truth values");
    const bool fits =
        computes_in_f32(what.result) || (is_8_bit_integer(what.result) && is_quantized(what));
    if (!fits) refuse(what, root, "dst cannot hold it as " + std::string(to_string(what.result)));
}

std::string number_text(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    return text;
}

// The text between the parentheses: argument nodes, then the numbers.
std::string parameters(const node& at) {
    std::string text;
    for (std::size_t i = 0; i < argument_count(at.kind); ++i) {
        if (i > 0) text += ',';
        text += std::to_string(at.arguments[i]);
    }
    switch (at.kind) {
    case node_kind::constant:
        return number_text(at.alpha);
    case node_kind::leaky_relu:
        return text + ',' + number_text(at.alpha);
    case node_kind::clamp:
    case node_kind::quantize:
        return text + ',' + number_text(at.alpha) + ',' + number_text(at.beta);
    default:
        return text;
    }
}

} // namespace

std::size_t argument_count(node_kind kind) {
    return facts_of(kind).arguments;
}

std::string_view to_string(node_kind kind) {
    return facts_of(kind).name;
}

void validate(const expression& what) {
    if (what.nodes.empty() || what.nodes.size() > max_nodes)
        throw invalid_argument("an expression has 1 to " + std::to_string(max_nodes) +
                               " nodes, not " + std::to_string(what.nodes.size()));
    std::size_t inputs = 0;
    for (std::size_t i = 0; i < what.nodes.size(); ++i) {
        if (what.nodes[i].kind == node_kind::input && ++inputs > max_inputs)
            refuse(what, i, "more than " + std::to_string(max_inputs) + " inputs");
        check_type(what, i);
        check_arguments(what, i);
    }
    check_result(what);
}

std::string to_string(const expression& what) {
    std::string text;
    for (std::size_t i = 0; i < what.nodes.size(); ++i) {
        const node& at = what.nodes[i];
        text +=
            std::to_string(i) + '=' + std::string(to_string(at.kind)) + '(' + parameters(at) + ')';
        if (at.type != data_type::undef) text += ':' + std::string(to_string(at.type));
        text += ' ';
    }
    return text + "-> " + std::string(to_string(what.result));
}

} // namespace maskwise::jit
