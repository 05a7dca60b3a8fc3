// Panels of four queries or one query, for one Highway target. A vector holds the panel's numbers
// for several keys. Keys and values are read in their own type.

#if defined(MASKWISE_KERNEL_ATTENTION_NARROW_PANEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_NARROW_PANEL_INL
#undef MASKWISE_KERNEL_ATTENTION_NARROW_PANEL_INL
#else
#define MASKWISE_KERNEL_ATTENTION_NARROW_PANEL_INL
#endif

#include "kernel/attention/narrow_products-inl.hpp"
#include "kernel/attention/panel-inl.hpp"
#include "kernel/attention/store-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <int Queries>
struct narrow_panel {
    static constexpr bool is_one = Queries == 1;
    HWY_ATTR HWY_INLINE static constexpr std::int64_t queries() { return Queries; }
    HWY_ATTR HWY_INLINE static std::int64_t keys_at_once() { return f32_lanes() / Queries; }
    HWY_ATTR HWY_INLINE static std::int64_t step() { return f32_lanes(); }

    template <class D>
    HWY_ATTR HWY_INLINE static hn::VFromD<D> load(D d, const hn::TFromD<D>* src) {
        if constexpr (is_one)
            return hn::Set(d, *src);
        else
            return hn::LoadDup128(d, src);
    }
    HWY_ATTR HWY_INLINE static void store(vec_f32 values, float* dst) {
        if constexpr (is_one) {
            *dst = hn::GetLane(values);
        } else {
            const auto first = [](auto a, auto) HWY_ATTR { return a; };
            hn::StoreU(reduce_blocks(values, first), f32x4_tag(), dst);
        }
    }
    template <class Combine>
    HWY_ATTR HWY_INLINE static vec_f32 reduce_keys(vec_f32 values, const Combine& combine) {
        float reduced[4];
        auto four = reduce_blocks(values, combine);
        if constexpr (is_one) {
            four = combine(four, hn::Shuffle1032(four));
            four = combine(four, hn::Shuffle2301(four));
        }
        hn::StoreU(four, f32x4_tag(), reduced);
        return load(f32_tag(), reduced);
    }
    HWY_ATTR HWY_INLINE static vec_f32 pad_keys(vec_f32 values, std::int64_t keys,
                                                vec_f32 padding) {
        if (keys >= keys_at_once()) return values;
        const auto valid = hn::FirstN(f32_tag(), static_cast<std::size_t>(Queries * keys));
        return hn::IfThenElse(valid, values, padding);
    }
    HWY_ATTR HWY_INLINE static vec_f32 load_by_key(const float* src) {
        float repeated[row_block_elems];
        for (std::int64_t i = 0; i < f32_lanes(); ++i) repeated[i] = src[i / Queries];
        return hn::LoadU(f32_tag(), repeated);
    }
    HWY_ATTR HWY_INLINE static auto key_indexes(std::int64_t key) {
        const hn::RebindToSigned<f32_tag> di;
        const auto in_vector = hn::ShiftRight<Queries / 2>(hn::Iota(di, 0));
        return hn::Add(hn::Set(di, static_cast<std::int32_t>(key)), in_vector);
    }
    HWY_ATTR HWY_INLINE static vec_f32 select_by_key(const std::byte* cond, vec_f32 score,
                                                     vec_f32 fill) {
        std::byte repeated[row_block_elems];
        for (std::int64_t i = 0; i < f32_lanes(); ++i) repeated[i] = cond[i / Queries];
        return select_by_bytes(repeated, score, fill);
    }
};

// Loads one row per query, padded with zeros.
template <class Panel>
HWY_ATTR void load_narrow_queries(const strided_matrix& src, std::int64_t queries,
                                  std::int64_t columns, float factor, float* dst, float*) {
    const std::int64_t row_elems = padded_elems(columns);
    std::memset(dst, 0, static_cast<std::size_t>(Panel::queries() * row_elems) * sizeof(float));
    strided_matrix row = src;
    for (std::int64_t q = 0; q < queries; ++q, dst += row_elems, row.first += src.row_bytes) {
        rows_as_f32(row, 1, columns, dst);
        if (factor != 1) multiply_all(dst, columns, factor);
    }
}

// Distances in floats: between steps of b, and between queries of b and of c.
struct operand_steps {
    std::int64_t b_step, b_query, c_query;
};

// A group is one vector of a row, or two vectors with the even and the odd elements: bf16 elements
// split by evenness are converted in half the instructions.
template <elem_type Type, std::size_t Size>
HWY_ATTR HWY_INLINE void load_group(const std::byte* src, std::int64_t count,
                                    vec_f32 (&group)[Size]) {
    if constexpr (Size == 1) {
        group[0] = count >= f32_lanes() ? load_elements<Type>(src) : load_part<Type>(src, count);
    } else {
        const hn::RebindToUnsigned<f32_tag> du;
        const hn::Repartition<std::uint16_t, f32_tag> d16;
        const auto both =
            hn::BitCast(du, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(src)));
        group[0] = hn::BitCast(f32_tag(), hn::ShiftLeft<16>(both));
        group[1] = hn::BitCast(f32_tag(), hn::And(both, hn::Set(du, 0xFFFF0000U)));
    }
}

template <std::size_t Size>
HWY_ATTR HWY_INLINE void load_group(const float* src, std::int64_t count, vec_f32 (&group)[Size]) {
    if constexpr (Size == 1)
        group[0] = load_floats(src, count);
    else
        hn::LoadInterleaved2(f32_tag(), src, group[0], group[1]);
}

template <std::size_t Size>
HWY_ATTR HWY_INLINE void store_group(const vec_f32 (&group)[Size], std::int64_t count, float* dst) {
    if constexpr (Size == 1)
        store_floats(group[0], count, dst);
    else
        hn::StoreInterleaved2(group[0], group[1], f32_tag(), dst);
}

// Multiplies `Vectors` vectors of the product's rows or, if not `Whole`, the tail, which is shorter
// than a vector. The rows of one step are contiguous in `a`. `c` has one row per query.
template <elem_type Type, int Queries, int Vectors, bool Whole>
HWY_ATTR void multiply_column_block(const panel_product& product, const operand_steps& steps,
                                    std::int64_t first) {
    const f32_tag d;
    constexpr std::int64_t width = bytes_of(Type);
    constexpr int size = Type == elem_type::bf16 && Vectors % 2 == 0 ? 2 : 1;
    constexpr int groups = Vectors / size;
    const std::int64_t lanes = f32_lanes(), step_bytes = product.step_bytes;
    const std::int64_t count = Whole ? lanes : product.rows - first;
    float* const c = product.c + first;
    vec_f32 sums[std::size_t{groups}][std::size_t{Queries}][std::size_t{size}];
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g)
#pragma GCC unroll 8
        for (int q = 0; q < Queries; ++q)
            if (product.accumulates)
                load_group(c + q * steps.c_query + g * size * lanes, count, sums[g][q]);
            else
                for (vec_f32& sum : sums[g][q]) sum = hn::Zero(d);
    const std::byte* a = product.a + first * width;
    const std::int64_t ahead = prefetch_distance(step_bytes, product.rows, width);
    const float* b = product.b;
    for (std::int64_t k = product.steps; k > 0; --k, a += step_bytes, b += steps.b_step) {
        prefetch_row(a + ahead, Vectors * lanes * width);
#pragma GCC unroll 8
        for (int g = 0; g < groups; ++g) {
            vec_f32 elements[std::size_t{size}];
            load_group<Type>(a + g * size * lanes * width, count, elements);
#pragma GCC unroll 8
            for (int q = 0; q < Queries; ++q)
#pragma GCC unroll 2
                for (int i = 0; i < size; ++i)
                    f32_product::add(elements[i], hn::Set(d, b[q * steps.b_query]), sums[g][q][i]);
        }
    }
    const float* const factor = product.factor;
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g)
#pragma GCC unroll 8
        for (int q = 0; q < Queries; ++q) {
            float* const dst = c + q * steps.c_query + g * size * lanes;
            if (factor != nullptr) {
                vec_f32 before[std::size_t{size}];
                load_group(dst, count, before);
#pragma GCC unroll 2
                for (int i = 0; i < size; ++i)
                    sums[g][q][i] = hn::MulAdd(before[i], hn::Set(d, factor[q]), sums[g][q][i]);
            }
            store_group(sums[g][q], count, dst);
        }
}

template <elem_type Type, int Queries>
HWY_ATTR void multiply_columns_by(const panel_product& product, const operand_steps& steps) {
    constexpr int many = std::min(max_sums / Queries, 8), several = std::min(many, 4);
    const std::int64_t lanes = f32_lanes(), end = product.rows;
    std::int64_t first = 0;
    for (; first + many * lanes <= end; first += many * lanes)
        multiply_column_block<Type, Queries, many, true>(product, steps, first);
    for (; first + several * lanes <= end; first += several * lanes)
        multiply_column_block<Type, Queries, several, true>(product, steps, first);
    for (; first + lanes <= end; first += lanes)
        multiply_column_block<Type, Queries, 1, true>(product, steps, first);
    if (first < end) multiply_column_block<Type, Queries, 1, false>(product, steps, first);
}

// Multiplies up to four queries at once, so that each value is loaded and converted once. Computing
// a lane past the last query is harmless.
template <elem_type Type>
HWY_ATTR void multiply_columns(const panel_product& product, const operand_steps& steps) {
    if (product.queries == 1) return multiply_columns_by<Type, 1>(product, steps);
    if (product.queries == 2) return multiply_columns_by<Type, 2>(product, steps);
    multiply_columns_by<Type, 4>(product, steps);
}

// For keys that are transposed in memory: the elements of one step are contiguous in a. The scores
// of one key must be contiguous, so the product is transposed.
template <class Panel, elem_type Type>
HWY_ATTR void multiply_transposed_keys(const panel_product& product) {
    const std::int64_t b_query = padded_elems(product.steps);
    if (Panel::queries() == 1) return multiply_columns<Type>(product, {1, b_query, 0});
    constexpr std::int64_t chunk = row_block_elems;
    float scores[4 * chunk] = {};
    panel_product part = product;
    part.c = scores;
    for (std::int64_t first = 0; first < product.rows; first += chunk) {
        part.rows = std::min(chunk, product.rows - first);
        multiply_columns<Type>(part, {1, b_query, chunk});
        transpose_matrix<4>(reinterpret_cast<const std::byte*>(scores), 4 * chunk, 4, part.rows,
                            reinterpret_cast<std::byte*>(product.c + 4 * first), 16);
        part.a += chunk * bytes_of(Type);
    }
}

template <class Panel, elem_type Type>
HWY_ATTR void multiply_keys_of(const panel_product& product) {
    if (product.step_bytes != bytes_of(Type)) return multiply_transposed_keys<Panel, Type>(product);
    if constexpr (Panel::is_one) return multiply_rows_by_one<f32_product, Type>(product);
    multiply_rows<f32_product, Type>(product);
}

template <class Panel>
HWY_ATTR void multiply_narrow_keys(const panel_product& product) {
    if (product.type == elem_type::f32) return multiply_keys_of<Panel, elem_type::f32>(product);
    if (product.type == elem_type::bf16) return multiply_keys_of<Panel, elem_type::bf16>(product);
    multiply_keys_of<Panel, elem_type::f16>(product);
}

template <class Panel>
HWY_ATTR void multiply_narrow_values(const panel_product& product) {
    const operand_steps steps{Panel::queries(), 1, product.rows};
    if (product.type == elem_type::f32) return multiply_columns<elem_type::f32>(product, steps);
    if (product.type == elem_type::bf16) return multiply_columns<elem_type::bf16>(product, steps);
    multiply_columns<elem_type::f16>(product, steps);
}

template <class Panel>
HWY_ATTR void merge_narrow(const panel_state& state, const panel_state& other,
                           std::int64_t values_step, std::int64_t columns, std::int64_t queries) {
    float scale_0[4], scale_1[4];
    merge_sums<Panel>(state, other, 0, scale_0, scale_1);
    for (std::int64_t q = 0; q < queries; ++q) {
        float* const values_0 = state.values + q * columns;
        const float* const values_1 = other.values + (values_step == 1 ? 0 : q * columns);
        for (std::int64_t c = 0; c < columns; ++c)
            values_0[c] = values_0[c] * scale_0[q] + values_1[c] * scale_1[q];
    }
}

HWY_ATTR inline void accumulate_narrow_sums(float* values, const float* sums, const float* factor,
                                            std::int64_t first, std::int64_t last,
                                            std::int64_t columns) {
    const f32_tag d;
    for (std::int64_t q = first; q < last; ++q)
        for (std::int64_t c = 0; c < columns; c += f32_lanes()) {
            const std::int64_t i = q * columns + c, count = columns - c;
            auto sum = load_floats(sums + i, count);
            if (factor != nullptr)
                sum = hn::MulAdd(load_floats(values + i, count), hn::Set(d, factor[q]), sum);
            store_floats(sum, count, values + i);
        }
}

HWY_ATTR inline void store_narrow(float* values, const float* factors, std::int64_t queries,
                                  std::int64_t columns, const strided_matrix& dst, float* scratch) {
    for (std::int64_t q = 0; q < queries; ++q, values += columns) {
        const float factor = factors[q];
        for (std::int64_t c = 0; c < columns; ++c)
            scratch[c] = factor == 0 ? 0 : values[c] * factor;
        store_row(scratch, columns, dst, dst.first + q * dst.row_bytes);
    }
}

// The kernels of this target for a narrow panel. Kernels for any panel width come from `wide`.
template <class Panel>
constexpr attention_kernels
attention_by_narrow_panel(const attention_kernels& wide,
                          void (*multiply_key_pairs)(const panel_product&)) {
    attention_kernels kernels = wide;
    kernels.panel = Panel::queries;
    kernels.multiply_keys = multiply_narrow_keys<Panel>;
    kernels.multiply_values = multiply_narrow_values<Panel>;
    kernels.multiply_key_pairs = multiply_key_pairs;
    kernels.multiply_value_pairs = nullptr;
    kernels.softmax_update = panel_softmax_update<Panel>;
    kernels.apply_mask = panel_apply_mask<Panel>;
    kernels.exponentiate = panel_exponentiate<Panel>;
    kernels.normalize = panel_normalize<Panel>;
    kernels.merge = merge_narrow<Panel>;
    kernels.accumulate_sums = accumulate_narrow_sums;
    kernels.load_queries = load_narrow_queries<Panel>;
    kernels.load_panel = panel_load<Panel>;
    kernels.write_slopes = panel_write_slopes<Panel>;
    kernels.load_conds = panel_load_conds<Panel>;
    kernels.store_panel = store_narrow;
    kernels.takes_any_type = true;
    kernels.key_alignment = static_cast<std::int64_t>(hn::MaxLanes(f32_tag())) / Panel::queries();
    return kernels;
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_NARROW_PANEL_INL
