// Attention of few queries, for one Highway target: a panel has four queries or one, and a vector
// the numbers of these for as many keys as it has room for. Keys and values are read in the type
// that they have.

#if defined(MASKWISE_KERNEL_ATTENTION_FEW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_FEW_INL
#undef MASKWISE_KERNEL_ATTENTION_FEW_INL
#else
#define MASKWISE_KERNEL_ATTENTION_FEW_INL
#endif

#include "kernel/attention/few_rows-inl.hpp"
#include "kernel/attention/panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <int Queries>
struct few_panel {
    static constexpr bool is_one = Queries == 1;
    HWY_ATTR HWY_INLINE static constexpr std::int64_t queries() { return Queries; }
    HWY_ATTR HWY_INLINE static std::int64_t keys_at_once() { return row_lanes() / Queries; }
    HWY_ATTR HWY_INLINE static std::int64_t step() { return row_lanes(); }

    template <class D>
    HWY_ATTR HWY_INLINE static hn::VFromD<D> load(D d, const hn::TFromD<D>* from) {
        if constexpr (is_one)
            return hn::Set(d, *from);
        else
            return hn::LoadDup128(d, from);
    }
    HWY_ATTR HWY_INLINE static void store(row_v values, float* to) {
        if constexpr (is_one) {
            *to = hn::GetLane(values);
        } else {
            const auto first = [](auto a, auto) HWY_ATTR { return a; };
            hn::StoreU(joined_blocks(values, first), four_d(), to);
        }
    }
    template <class Join>
    HWY_ATTR HWY_INLINE static row_v across(row_v values, const Join& join) {
        float joined[4];
        auto four = joined_blocks(values, join);
        if constexpr (is_one) {
            four = join(four, hn::Shuffle1032(four));
            four = join(four, hn::Shuffle2301(four));
        }
        hn::StoreU(four, four_d(), joined);
        return load(row_d(), joined);
    }
    HWY_ATTR HWY_INLINE static row_v limited(row_v values, std::int64_t keys, row_v otherwise) {
        if (keys >= keys_at_once()) return values;
        const auto valid = hn::FirstN(row_d(), static_cast<std::size_t>(Queries * keys));
        return hn::IfThenElse(valid, values, otherwise);
    }
    HWY_ATTR HWY_INLINE static row_v of_keys(const float* from) {
        float all[row_block_elems];
        for (std::int64_t i = 0; i < row_lanes(); ++i) all[i] = from[i / Queries];
        return hn::LoadU(row_d(), all);
    }
    HWY_ATTR HWY_INLINE static auto numbers_of_keys(std::int64_t key) {
        const hn::RebindToSigned<row_d> di;
        const auto in_vector = hn::ShiftRight<Queries / 2>(hn::Iota(di, 0));
        return hn::Add(hn::Set(di, static_cast<std::int32_t>(key)), in_vector);
    }
    HWY_ATTR HWY_INLINE static row_v kept_by_key(const std::byte* cond, row_v score, row_v fill) {
        std::byte all[row_block_elems];
        for (std::int64_t i = 0; i < row_lanes(); ++i) all[i] = cond[i / Queries];
        return selected(all, score, fill);
    }
};

// A row for each query, with zeros behind its last element.
template <class Panel>
HWY_ATTR void load_few_queries(const strided_matrix& from, std::int64_t queries,
                               std::int64_t columns, float factor, float* to, float*) {
    const std::int64_t row_elems = padded_elems(columns);
    std::memset(to, 0, static_cast<std::size_t>(Panel::queries() * row_elems) * sizeof(float));
    strided_matrix row = from;
    for (std::int64_t q = 0; q < queries; ++q, to += row_elems, row.first += from.row_bytes) {
        rows_as_f32(row, 1, columns, to);
        if (factor != 1) multiply_all(to, columns, factor);
    }
}

// How b and c lie: floats from a step of b to the next, and from a query to the next.
struct few_steps {
    std::int64_t b_step, b_query, c_query;
};

// Rows of the product that lie side by side in a: whole vectors of them, or less than one. Those of
// c are rows of a query.
template <row_type Type, int Queries, int Vectors, bool Whole>
HWY_ATTR void multiply_few_columns(const panel_product& product, const few_steps& steps,
                                   std::int64_t query, std::int64_t first) {
    const row_d d;
    constexpr std::int64_t width = bytes_of(Type);
    const std::int64_t lanes = row_lanes(), step_bytes = product.step_bytes;
    const std::int64_t count = Whole ? lanes : product.rows - first;
    float* const c = product.c + query * steps.c_query + first;
    row_v sums[std::size_t{Vectors}][std::size_t{Queries}];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
#pragma GCC unroll 8
        for (int q = 0; q < Queries; ++q)
            sums[v][q] = product.goes_on ? load_floats(c + q * steps.c_query + v * lanes, count)
                                         : hn::Zero(d);
    const std::byte* a = product.a + first * width;
    // For the first queries alone: the others find rows in a cache.
    const std::int64_t ahead = query > 0 ? 0 : asked_ahead(step_bytes, product.rows, width);
    const float* b = product.b + query * steps.b_query;
    for (std::int64_t k = product.steps; k > 0; --k, a += step_bytes, b += steps.b_step) {
        for (std::int64_t v = 0; v < Vectors; ++v)
            __builtin_prefetch(a + v * lanes * width + ahead);
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            const std::byte* const at = a + v * lanes * width;
            const auto elements = Whole ? load_elements<Type>(at) : load_part<Type>(at, count);
#pragma GCC unroll 8
            for (int q = 0; q < Queries; ++q)
                f32_product::add(elements, hn::Set(d, b[q * steps.b_query]), sums[v][q]);
        }
    }
    const float* const factor = product.factor;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
#pragma GCC unroll 8
        for (int q = 0; q < Queries; ++q) {
            float* const to = c + q * steps.c_query + v * lanes;
            row_v sum = sums[v][q];
            if (factor != nullptr)
                sum = hn::MulAdd(load_floats(to, count), hn::Set(d, factor[query + q]), sum);
            store_floats(sum, count, to);
        }
}

template <row_type Type, int Queries>
HWY_ATTR void multiply_columns_of(const panel_product& product, const few_steps& steps,
                                  std::int64_t query) {
    constexpr int most = std::min(few_sums / Queries, 8), some = std::min(most, 4);
    const std::int64_t lanes = row_lanes(), end = product.rows;
    std::int64_t first = 0;
    for (; first + most * lanes <= end; first += most * lanes)
        multiply_few_columns<Type, Queries, most, true>(product, steps, query, first);
    for (; first + some * lanes <= end; first += some * lanes)
        multiply_few_columns<Type, Queries, some, true>(product, steps, query, first);
    for (; first + lanes <= end; first += lanes)
        multiply_few_columns<Type, Queries, 1, true>(product, steps, query, first);
    if (first < end) multiply_few_columns<Type, Queries, 1, false>(product, steps, query, first);
}

// All queries at once where that reads rows of a from end to end; a lane behind the last query does
// no harm. Otherwise two, which read them once more out of a cache.
template <row_type Type>
HWY_ATTR void multiply_columns(const panel_product& product, const few_steps& steps) {
    if (product.queries == 1) return multiply_columns_of<Type, 1>(product, steps, 0);
    if (product.queries > 2 && product.rows <= few_sums / 4 * row_lanes())
        return multiply_columns_of<Type, 4>(product, steps, 0);
    for (std::int64_t query = 0; query < product.queries; query += 2)
        multiply_columns_of<Type, 2>(product, steps, query);
}

// Keys that lie side by side. Scores of a key are, too: what the product makes is turned.
template <class Panel, row_type Type>
HWY_ATTR void multiply_turned_keys(const panel_product& product) {
    const std::int64_t b_query = padded_elems(product.steps);
    if (Panel::queries() == 1) return multiply_columns<Type>(product, {1, b_query, 0});
    constexpr std::int64_t most = row_block_elems;
    float scores[4 * most] = {};
    panel_product some = product;
    some.c = scores;
    for (std::int64_t first = 0; first < product.rows; first += most) {
        some.rows = std::min(most, product.rows - first);
        multiply_columns<Type>(some, {1, b_query, most});
        transpose_matrix<4>(reinterpret_cast<const std::byte*>(scores), 4 * most, 4, some.rows,
                            reinterpret_cast<std::byte*>(product.c + 4 * first), 16);
        some.a += most * bytes_of(Type);
    }
}

template <class Panel, row_type Type>
HWY_ATTR void multiply_keys_of(const panel_product& product) {
    if (product.step_bytes != bytes_of(Type)) return multiply_turned_keys<Panel, Type>(product);
    if constexpr (Panel::is_one) return multiply_rows_by_one<f32_product, Type>(product);
    multiply_rows<f32_product, Type>(product);
}

template <class Panel>
HWY_ATTR void multiply_few_keys(const panel_product& product) {
    if (product.type == row_type::f32) return multiply_keys_of<Panel, row_type::f32>(product);
    if (product.type == row_type::bf16) return multiply_keys_of<Panel, row_type::bf16>(product);
    multiply_keys_of<Panel, row_type::f16>(product);
}

template <class Panel>
HWY_ATTR void multiply_few_values(const panel_product& product) {
    const few_steps steps{Panel::queries(), 1, product.rows};
    if (product.type == row_type::f32) return multiply_columns<row_type::f32>(product, steps);
    if (product.type == row_type::bf16) return multiply_columns<row_type::bf16>(product, steps);
    multiply_columns<row_type::f16>(product, steps);
}

template <class Panel>
HWY_ATTR void merge_few(const panel_state& into, const panel_state& from, std::int64_t values_step,
                        std::int64_t columns, std::int64_t queries) {
    float less_0[4], less_1[4];
    merge_sums<Panel>(into, from, 0, less_0, less_1);
    for (std::int64_t q = 0; q < queries; ++q) {
        float* const to = into.values + q * columns;
        const float* const other = from.values + (values_step == 1 ? 0 : q * columns);
        for (std::int64_t c = 0; c < columns; ++c) to[c] = to[c] * less_0[q] + other[c] * less_1[q];
    }
}

HWY_ATTR inline void join_sums_of_few(float* values, const float* sums, const float* factor,
                                      std::int64_t first, std::int64_t last, std::int64_t columns) {
    const row_d d;
    for (std::int64_t q = first; q < last; ++q)
        for (std::int64_t c = 0; c < columns; c += row_lanes()) {
            const std::int64_t at = q * columns + c, count = columns - c;
            auto sum = load_floats(sums + at, count);
            if (factor != nullptr)
                sum = hn::MulAdd(load_floats(values + at, count), hn::Set(d, factor[q]), sum);
            store_floats(sum, count, values + at);
        }
}

HWY_ATTR inline void store_few(float* values, const float* factors, std::int64_t queries,
                               std::int64_t columns, const strided_matrix& to, float* work) {
    for (std::int64_t q = 0; q < queries; ++q, values += columns) {
        const float factor = factors[q];
        for (std::int64_t c = 0; c < columns; ++c) work[c] = factor == 0 ? 0 : values[c] * factor;
        store_row(work, columns, to, to.first + q * to.row_bytes);
    }
}

// The kernels of this target for a panel of few; `wide` has those that they share.
template <class Panel>
constexpr attention_kernels attention_by_few(const attention_kernels& wide,
                                             void (*multiply_key_pairs)(const panel_product&)) {
    attention_kernels made = wide;
    made.panel = Panel::queries;
    made.multiply_keys = multiply_few_keys<Panel>;
    made.multiply_values = multiply_few_values<Panel>;
    made.multiply_key_pairs = multiply_key_pairs;
    made.multiply_value_pairs = nullptr;
    made.weigh = panel_weigh<Panel>;
    made.finish = panel_finish<Panel>;
    made.exponentiate = panel_exponentiate<Panel>;
    made.normalize = panel_normalize<Panel>;
    made.merge = merge_few<Panel>;
    made.join_sums = join_sums_of_few;
    made.load_queries = load_few_queries<Panel>;
    made.load_panel = panel_load<Panel>;
    made.load_conds = panel_load_conds<Panel>;
    made.store_panel = store_few;
    made.takes_any_type = true;
    made.keys_together = static_cast<std::int64_t>(hn::MaxLanes(row_d())) / Panel::queries();
    return made;
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_FEW_INL
