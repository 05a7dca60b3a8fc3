#include "data/filler.hpp"

#include "data/mask.hpp"
#include "support/case_generator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise::bench {
namespace {

// Values of one input, uniform in [low, high), or constant if low equals high. Integers round down.
struct recipe {
    double low = -1.0;
    double high = 1.0;
};

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

recipe constant(double value) {
    return {value, value};
}

std::size_t slot_of(const op& consumer, std::size_t id) {
    for (std::size_t i = 0; i < consumer.inputs.size(); ++i)
        if (consumer.inputs[i].id == id) return i;
    return 0;
}

// Returns the first op of `kinds` that tensor `id` reaches through element-wise ops, or null.
const op* reached(const graph& g, std::size_t id, std::initializer_list<const char*> kinds) {
    static const char* const through[] = {"Add",      "Divide",   "Multiply",
                                          "Subtract", "TypeCast", "Select"};
    for (const op* o : find_consumers(g, id)) {
        if (std::any_of(kinds.begin(), kinds.end(), [o](auto kind) { return o->kind == kind; }))
            return o;
        const bool passes = std::any_of(std::begin(through), std::end(through),
                                        [o](auto kind) { return o->kind == kind; });
        if (!passes || o->outputs.empty()) continue;
        if (const op* hit = reached(g, o->outputs[0].id, kinds)) return hit;
    }
    return nullptr;
}

recipe masked_value(const graph& g, const op& select) {
    const op* end = reached(g, select.outputs.at(0).id, {"SoftMax", "Exp"});
    if (!end) return {-8.0, 8.0};
    const bool accepts = end->kind == "Exp" ||
                         end->attr<std::string>("mode", "none") == "inf_as_zero" ||
                         has_op(g, "GenIndex"); // a causal row never masks its first element
    return constant(accepts ? minus_infinity : -10000.0);
}

// Shift of the row index in an implicit causal mask.
recipe index_shift(const op& consumer) {
    const dims& shape = consumer.outputs.at(0).shape;
    if (shape.size() < 2) return constant(0);
    return constant(
        static_cast<double>(consumer.kind == "Add" ? shape.back() : shape[shape.size() - 2]));
}

recipe quantized(const graph& g, const logical_tensor& t, const op& consumer) {
    if (g.ops.size() == 1) return t.dtype == data_type::u8 ? recipe{0, 256} : recipe{-128, 128};
    const dims zero_points = consumer.attr<dims>("zps", {});
    const double zero = zero_points.empty() ? 0.0 : static_cast<double>(zero_points[0]);
    return {zero - 12, zero + 13}; // small, so that a SoftMax of the values is not one-hot
}

recipe dynamic_dequantize(std::size_t slot, const logical_tensor& t) {
    if (slot == 0) return {-32, 33};
    if (slot == 1) return {0.01, 0.05};
    return t.dtype == data_type::u8 ? recipe{0, 8} : recipe{-4, 5};
}

bool is_scalar(const logical_tensor& t) {
    return test::count_of(t.shape) == 1;
}

recipe float_recipe(const graph& g, const logical_tensor& t, const op& consumer, std::size_t slot) {
    const bool alone = g.ops.size() == 1;
    const std::string& kind = consumer.kind;
    if (kind == "Divide" && slot == 1) return alone || !is_scalar(t) ? recipe{1, 4} : constant(8);
    if (kind == "Multiply" && is_scalar(t) && !alone) return constant(0.125);
    if (kind == "Select" && is_scalar(t) && !alone) return masked_value(g, consumer);
    if (kind == "Subtract" && slot == 1 && reached(g, consumer.outputs.at(0).id, {"Exp"}))
        return {4, 6}; // the forward SoftMax's statistics, so large that no probability exceeds 1
    if (kind == "Sqrt" || kind == "Log" || kind == "Pow" || kind == "Reciprocal") return {0.5, 4};
    if (kind == "SoftMaxBackward" && slot == 1) return {0, 0.1};
    return alone ? recipe{-8, 8} : recipe{-1, 1};
}

recipe recipe_for(const graph& g, const logical_tensor& t) {
    const std::vector<const op*> consumers = find_consumers(g, t.id);
    const op& consumer = *consumers.at(0);
    const std::size_t slot = slot_of(consumer, t.id);
    if (consumer.kind == "DynamicDequantize") return dynamic_dequantize(slot, t);
    if (is_floating(t.dtype)) return float_recipe(g, t, consumer, slot);
    if (t.dtype == data_type::s8 || t.dtype == data_type::u8) return quantized(g, t, consumer);
    if (consumer.kind == "Add" || consumer.kind == "Subtract") return index_shift(consumer);
    return {-100, 101};
}

tensor fill_numbers(const logical_tensor& t, const recipe& r, test::generator& random) {
    tensor result(t.dtype, t.shape);
    const std::size_t width = result.width();
    for (std::size_t i = 0; i < result.count(); ++i) {
        double value = r.low == r.high ? r.low : test::draw_number(random, r.low, r.high);
        if (!is_floating(t.dtype)) value = std::floor(value);
        store_number(t.dtype, value, result.bytes.data() + i * width);
    }
    return result;
}

tensor fill_bits(const logical_tensor& t, test::generator& random) {
    tensor result(t.dtype, t.shape);
    for (std::size_t i = 0; i < result.bytes.size(); i += sizeof(std::uint64_t)) {
        const std::uint64_t bits = random();
        std::memcpy(result.bytes.data() + i, &bits, std::min(sizeof bits, result.bytes.size() - i));
    }
    // Patterns that arithmetic could change: -0.0, a signalling NaN, a NaN payload.
    const std::size_t width = result.width();
    for (std::size_t i = 0; i + 1 < result.count(); i += 13)
        for (std::size_t b = 0; b < width; ++b)
            result.bytes[i * width + b] = b + 1 == width ? std::byte{0x80} : std::byte{0};
    for (std::size_t i = 5; i < result.count(); i += 17) {
        std::byte* next_element = result.bytes.data() + (i + 1) * width;
        next_element[-1] = std::byte{0x7f};
        next_element[-2] = t.dtype == data_type::f16 ? std::byte{0x7d} : std::byte{0xa1};
        if (t.dtype == data_type::f16) next_element[-1] = std::byte{0xfd};
    }
    return result;
}

std::string mask_for(const graph& g, const logical_tensor& t, const std::string& requested) {
    if (requested != "auto") return requested;
    if (!has_op(g, "SoftMax") && !has_op(g, "Exp")) return "random";
    const bool has_rows = t.shape.size() > 1 && t.shape[t.shape.size() - 2] > 1;
    return has_rows ? "causal" : "padding";
}

} // namespace

bool bits_only(const graph& g) {
    return std::all_of(g.ops.begin(), g.ops.end(), [](const op& o) {
        return o.kind == "Select" || o.kind == "StaticTranspose" || o.kind == "StaticReshape" ||
               (o.kind == "Reorder" && o.inputs.at(0).dtype == o.outputs.at(0).dtype);
    });
}

tensor_map fill_inputs(const graph& g, const fill_policy& policy) {
    tensor_map values;
    for (const std::size_t id : graph_inputs(g)) {
        const logical_tensor& t = *find_tensor(g, id);
        test::generator random(policy.seed * 1000003U + id);
        if (t.dtype == data_type::boolean)
            values.emplace(id, make_mask(mask_for(g, t, policy.mask), t.shape, policy.any_true_byte,
                                         random()));
        else if (policy.any_bits && is_floating(t.dtype))
            values.emplace(id, fill_bits(t, random));
        else
            values.emplace(id, fill_numbers(t, recipe_for(g, t), random));
    }
    return values;
}

} // namespace maskwise::bench
