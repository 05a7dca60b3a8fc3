#include "chain.hpp"

#include "chain_writer.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace maskwise::fuzz {
namespace {

using test::draw;
using test::one_in;

using attributes = test::attribute_list;

constexpr float lowest = -3e38F;
constexpr double most = 3e4; // below f16's largest number

attributes axis_of(std::int64_t axis) {
    return {{dnnl_graph_op_attr_axis, std::vector<std::int64_t>{axis}}};
}

class chain_drawer {
public:
    chain_drawer(generator& random, generator& later)
        : random_(random), later_(later), to_(random, later) {}

    chain_description draw_chain() {
        const auto rank = draw(random_, 1, 4);
        for (int i = 0; i < rank; ++i) whole_.push_back(to_.add_dimension());
        to_.may_reshape(whole_.size());
        const bool quantizes = one_in(random_, 8);
        may_cast_ = !quantizes; // Quantize accepts only f32
        start(to_.input(quantizes ? dnnl_f32 : draw_type(), whole_));
        for (auto length = draw(random_, 1, 6); length > 0; --length) draw_step();
        if (!has_select_) draw_select();
        if (one_in(random_, 2)) draw_step();
        if (!one_in(later_, 3)) start(soft_max_of(current()));
        if (quantizes) quantize();
        return to_.finish();
    }

    chain_description draw_attention() {
        may_cast_ = false;
        may_replace_ = dnnl_version()->minor >= 8; // older kernels may crash
        may_drop_dimensions_ = false; // oneDNN 3.13 crashes on an Add of lower rank after a MatMul
        masks_broadcast_ = !one_in(later_, 3); // Maskwise leaves other masks to oneDNN 3.13
        const auto type = draw_type();
        const std::size_t batch = to_.add_dimension(draw(random_, 1, 3));
        const std::size_t heads = to_.add_dimension(draw(random_, 1, 4));
        const std::size_t rows = to_.add_dimension(), columns = to_.add_dimension();
        const std::size_t size = to_.add_dimension(draw(random_, 2, 33));
        const bool transposes = one_in(random_, 2);
        // With grouped queries, heads share keys and values. A copy of `later_` decides, so that
        // most inputs of the corpus still draw the same graphs.
        auto grouping = later_;
        dimensions all_heads{batch, heads}, shared = all_heads;
        if (one_in(grouping, 5)) all_heads.push_back(to_.add_dimension(3)), shared.push_back(0);
        const auto with_matrix = [](dimensions shape, std::size_t down, std::size_t across) {
            shape.insert(shape.end(), {down, across});
            return shape;
        };
        const auto q = to_.input(type, with_matrix(all_heads, rows, size), 0.25);
        const auto k = to_.input(type,
                                 transposes ? with_matrix(shared, columns, size)
                                            : with_matrix(shared, size, columns),
                                 0.25);
        whole_ = with_matrix(all_heads, rows, columns);
        // oneDNN 3.13 crashes if scores or added operands are not row-major.
        to_.may_lay_out_anew = false;
        start(multiply_matrices(q, k, whole_, 2.1, transposes));
        for (auto steps = draw(random_, 0, 1); steps > 0; --steps) draw_binary();
        to_.may_lay_out_anew = true;
        if (one_in(random_, 2)) {
            mask_soft_max(one_in(random_, 2) ? -INFINITY : lowest);
        } else {
            draw_select();
            for (auto steps = draw(random_, 0, 1); steps > 0; --steps) draw_binary();
            if (one_in(random_, 6)) return to_.finish();
            start(soft_max_of(current()));
        }
        const auto v = to_.input(type, with_matrix(shared, columns, size));
        start(multiply_matrices(current(), v, with_matrix(all_heads, rows, size), 2, false));
        if (one_in(random_, 3)) reorder();
        return to_.finish();
    }

private:
    const chain_value& current() const { return values_.back(); }
    void start(const chain_value& value) { values_.push_back(value); }

    chain_value multiply_matrices(const chain_value& a, const chain_value& b,
                                  const dimensions& shape, double largest, bool transposes) {
        attributes attrs;
        if (transposes) attrs.emplace_back(dnnl_graph_op_attr_transpose_b, true);
        return to_.op(dnnl_graph_op_matmul, {a, b}, a.type, shape, largest,
                      a.error * 2 + largest * 1e-5, std::move(attrs));
    }

    void reorder() {
        const auto& from = current();
        start(
            to_.op(dnnl_graph_op_reorder, {from}, from.type, from.shape, from.largest, from.error));
    }

    dnnl_data_type_t draw_type() {
        const auto which = draw(random_, 0, 5);
        return which == 0 ? dnnl_f16 : which == 1 ? dnnl_bf16 : dnnl_f32;
    }

    dimensions draw_part() {
        auto part = whole_;
        if (may_drop_dimensions_ && one_in(random_, 4))
            part.erase(part.begin(), part.begin() + draw(random_, 0, std::ssize(part)));
        for (auto& dimension : part)
            if (one_in(random_, 4)) dimension = 0;
        if (part.empty()) part = {0};
        return part;
    }

    chain_value draw_operand() {
        if (one_in(random_, 12)) {
            const auto& any =
                values_[static_cast<std::size_t>(draw(random_, 0, std::ssize(values_) - 1))];
            if (any.type == current().type && any.largest * current().largest < most) return any;
        }
        const auto shape = one_in(random_, 2) ? whole_ : draw_part();
        if (to_.allows_host_scalar(current().type) && one_in(later_, 10))
            return to_.host_scalar_input();
        return to_.input(current().type, shape);
    }

    void draw_step() {
        const auto which = draw(random_, 0, 12);
        if (which < 4) return draw_select();
        if (which < 7) return draw_binary();
        if (which < 10) return draw_unary();
        if (which == 10) return cast();
        if (which == 11) return mask_soft_max(lowest);
        start(soft_max_of(current()));
    }

    // Divisors are graph inputs with absolute values of at least 0.5.
    void draw_binary() {
        const auto row = current();
        static constexpr dnnl_graph_op_kind_t kinds[] = {
            dnnl_graph_op_add,      dnnl_graph_op_subtract, dnnl_graph_op_add,
            dnnl_graph_op_maximum, // Maskwise never merges Maximum
            dnnl_graph_op_multiply, dnnl_graph_op_divide};
        const auto kind = kinds[draw(random_, 0, 2 * row.largest < most ? 5 : 3)];
        const bool divides = kind == dnnl_graph_op_divide;
        const auto other = divides ? to_.input(row.type, draw_part()) : draw_operand();
        const bool scales = divides || kind == dnnl_graph_op_multiply;
        const double largest = scales ? row.largest * other.largest : row.largest + other.largest;
        const double error = scales ? row.error * other.largest + other.error * row.largest
                                    : row.error + other.error;
        std::vector<chain_value> inputs{row, other};
        if (!divides && one_in(random_, 3)) std::swap(inputs[0], inputs[1]);
        start(to_.op(kind, inputs, row.type, whole_, largest, error));
    }

    void draw_unary() {
        static constexpr dnnl_graph_op_kind_t kinds[] = {
            dnnl_graph_op_tanh,       dnnl_graph_op_tanh,       dnnl_graph_op_leaky_relu,
            dnnl_graph_op_leaky_relu, dnnl_graph_op_leaky_relu, dnnl_graph_op_clamp,
            dnnl_graph_op_exp,        dnnl_graph_op_square}; // Maskwise never merges the last three
        const auto row = current();
        auto kind = kinds[draw(random_, 0, 7)];
        const bool grows = kind == dnnl_graph_op_exp || kind == dnnl_graph_op_square;
        if (grows && (row.largest > 4 || row.error > 0.02)) kind = dnnl_graph_op_tanh;
        double largest = row.largest, error = row.error;
        attributes attrs;
        if (kind == dnnl_graph_op_tanh) largest = 1;
        if (kind == dnnl_graph_op_exp) largest = std::exp(row.largest), error *= 1.1 * largest;
        if (kind == dnnl_graph_op_square)
            largest *= row.largest, error *= 2 * row.largest + row.error;
        if (kind == dnnl_graph_op_leaky_relu) attrs = {{dnnl_graph_op_attr_alpha, 0.3F}};
        if (kind == dnnl_graph_op_clamp)
            attrs = {{dnnl_graph_op_attr_min, -0.7F}, {dnnl_graph_op_attr_max, 1.3F}};
        start(to_.op(kind, {row}, row.type, whole_, largest, error, std::move(attrs)));
    }

    void cast() {
        const auto& from = current();
        if (!may_cast_) return;
        const auto narrow = one_in(random_, 3) ? dnnl_f16 : dnnl_bf16;
        start(to_.op(dnnl_graph_op_type_cast, {from}, from.type == dnnl_f32 ? narrow : dnnl_f32,
                     whole_, from.largest, from.error));
    }

    // The fill gives masked values no weight. If the fill is -infinity, a fully masked row becomes
    // NaN or 0.
    void mask_soft_max(float hidden) {
        const auto cond = draw_cond();
        const auto row = current();
        const auto fill = to_.fill(row.type, one_in(random_, 3) ? whole_ : dimensions{0}, hidden);
        has_select_ = true;
        start(soft_max_of(to_.op(dnnl_graph_op_select, {cond, row, fill}, row.type, whole_,
                                 row.largest, row.error)));
    }

    chain_value soft_max_of(const chain_value& from) {
        const auto rank = std::ssize(whole_);
        std::int64_t axis = one_in(random_, 2) ? -1 : rank - 1;
        if (one_in(random_, 5)) axis = draw(random_, 0, rank - 1);
        auto attrs = axis_of(axis);
        if (knows_more_ && one_in(random_, 3))
            attrs.emplace_back(dnnl_graph_op_attr_mode, std::string("inf_as_zero"));
        const auto result = to_.op(dnnl_graph_op_softmax, {from}, from.type, whole_, 1,
                                   std::min(1.0, 2.5 * from.error), std::move(attrs));
        auto row = whole_;
        row[static_cast<std::size_t>((axis + rank) % rank)] = 0;
        if (knows_more_ && !may_cast_ && one_in(random_, 4))
            to_.add_output(dnnl_f32, row, from.error + (from.largest + 5) * 1e-5);
        return result;
    }

    // Comparisons read only graph inputs, because a nearly correct result may compare differently.
    chain_value draw_cond() {
        const auto how = draw(random_, 0, 5);
        if (how == 0 && whole_.size() >= 2) return draw_causal_mask();
        if (how != 1) {
            const auto shape = one_in(random_, 2) ? whole_ : draw_part();
            return to_.input(dnnl_boolean, masks_broadcast_ ? draw_broadcast_mask() : shape);
        }
        auto left = to_.input(current().type, whole_);
        auto right = to_.input(current().type, draw_part());
        if (one_in(random_, 2)) std::swap(left, right);
        return to_.op(dnnl_graph_op_greater_equal, {left, right}, dnnl_boolean, whole_, 0, 0);
    }

    // An attention mask's shape: broadcast over heads, sometimes also over batches, rows or
    // columns.
    dimensions draw_broadcast_mask() {
        auto shape = whole_;
        shape[1] = 0;
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (i != 1 && one_in(later_, 3)) shape[i] = 0;
        return shape;
    }

    chain_value draw_causal_mask() {
        const auto rank = std::ssize(whole_);
        const auto from = one_in(random_, 2) ? current() : to_.input(current().type, whole_);
        const auto index = [&](std::int64_t axis) {
            return to_.op(dnnl_graph_op_gen_index, {from}, dnnl_s32, whole_, 0, 0, axis_of(axis));
        };
        const auto rows = index(one_in(random_, 2) ? -2 : one_in(random_, 8) ? -1 : rank - 2);
        const auto columns = index(one_in(random_, 2) ? -1 : rank - 1);
        return to_.op(dnnl_graph_op_greater_equal, {rows, columns}, dnnl_boolean, whole_, 0, 0);
    }

    void draw_select() {
        const auto cond = draw_cond();
        const auto row = current();
        const auto other = draw_operand();
        has_select_ = true;
        std::vector<chain_value> inputs{cond, row, other};
        if (may_replace_ && one_in(random_, 2)) std::swap(inputs[1], inputs[2]);
        start(to_.op(dnnl_graph_op_select, inputs, row.type, whole_,
                     std::max(row.largest, other.largest), std::max(row.error, other.error)));
    }

    void quantize() {
        const auto from = current();
        const double scale = from.largest / 100;
        attributes attrs{{dnnl_graph_op_attr_scales, static_cast<float>(scale)},
                         {dnnl_graph_op_attr_zps, std::vector<std::int64_t>{3}}};
        start(to_.op(dnnl_graph_op_quantize, {from}, one_in(random_, 2) ? dnnl_u8 : dnnl_s8, whole_,
                     128, from.error / scale + 0.5, std::move(attrs)));
    }

    generator& random_;
    generator& later_;
    chain_writer to_;
    dimensions whole_; // the shape of every result
    std::vector<chain_value> values_;
    bool has_select_ = false;
    const bool knows_more_ = dnnl_version()->minor >= 13; // SoftMax has modes and statistics
    bool may_replace_ = true; // whether a Select may replace scores where its mask is true
    bool may_drop_dimensions_ = true;
    bool may_cast_ = true;
    bool masks_broadcast_ = false;
};

} // namespace

chain_description draw_chain(generator& random, generator& later) {
    return chain_drawer(random, later).draw_chain();
}

chain_description draw_attention(generator& random, generator& later) {
    return chain_drawer(random, later).draw_attention();
}

} // namespace maskwise::fuzz
