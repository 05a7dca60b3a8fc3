// Each entry of node_kinds.inc as instructions; expression.hpp defines what an entry computes.

#include "jit/generator_x86.hpp"

namespace maskwise::jit {

void generator::compute(const operation& o) {
    switch (o.what.kind) {
#define MASKWISE_NODE(name, arguments)                                                             \
    case node_kind::name:                                                                          \
        return emit_##name(o);
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
    case node_kind::constant:
        return broadcast(o.to, o.what.alpha);
    case node_kind::input:
        break; // a load, no operation
    }
}

void generator::emit_add(const operation& o) {
    vaddps(v(o.to), v(o.from[0]), v(o.from[1]));
}
void generator::emit_subtract(const operation& o) {
    vsubps(v(o.to), v(o.from[0]), v(o.from[1]));
}
void generator::emit_multiply(const operation& o) {
    vmulps(v(o.to), v(o.from[0]), v(o.from[1]));
}
void generator::emit_divide(const operation& o) {
    vdivps(v(o.to), v(o.from[0]), v(o.from[1]));
}
void generator::emit_maximum(const operation& o) {
    vmaxps(v(o.to), v(o.from[0]), v(o.from[1]));
}
void generator::emit_minimum(const operation& o) {
    vminps(v(o.to), v(o.from[0]), v(o.from[1]));
}
void generator::emit_abs(const operation& o) {
    vandps(v(o.to), v(o.from[0]), constant_bits(0x7FFFFFFF));
}
void generator::emit_square(const operation& o) {
    vmulps(v(o.to), v(o.from[0]), v(o.from[0]));
}
void generator::emit_sqrt(const operation& o) {
    vsqrtps(v(o.to), v(o.from[0]));
}
void generator::emit_exp(const operation& o) {
    exponential(o.to, o.from[0]);
}
void generator::emit_tanh(const operation& o) {
    hyperbolic_tangent(o.to, o.from[0]);
}
void generator::emit_sigmoid(const operation& o) {
    logistic(o.to, o.from[0]);
}
void generator::emit_relu(const operation& o) {
    vmaxps(v(o.to), v(o.from[0]), constant(0.0F));
}
void generator::emit_leaky_relu(const operation& o) {
    const scratch_register is_positive(truth_pool());
    vmulps(v(o.to), v(o.from[0]), constant(o.what.alpha));
    compare(is_positive.index(), o.from[0], constant(0.0F), greater);
    blend(o.to, is_positive.index(), o.from[0], o.to);
}
void generator::emit_clamp(const operation& o) {
    vmaxps(v(o.to), v(o.from[0]), constant(o.what.alpha));
    vminps(v(o.to), v(o.to), constant(o.what.beta));
}
void generator::emit_greater_equal(const operation& o) {
    compare(o.to, o.from[0], v(o.from[1]), vectors::greater_equal);
}
void generator::emit_select(const operation& o) {
    blend(o.to, o.from[0], o.from[1], o.from[2]);
}
void generator::emit_type_cast(const operation& o) {
    encode(o.to, o.from[0], o.what.type);
    decode(o.to, o.to, o.what.type);
}
void generator::emit_quantize(const operation& o) {
    const bool is_signed = o.what.type == data_type::i8;
    vdivps(v(o.to), v(o.from[0]), constant(o.what.alpha));
    vaddps(v(o.to), v(o.to), constant(o.what.beta));
    round_to_whole(o.to, v(o.to));
    vmaxps(v(o.to), v(o.to), constant(is_signed ? -128.0F : 0.0F));
    vminps(v(o.to), v(o.to), constant(is_signed ? 127.0F : 255.0F));
}

} // namespace maskwise::jit
