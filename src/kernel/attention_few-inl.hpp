// Attention of few queries, for one Highway target: a panel has four queries, and a vector the
// numbers of these for as many keys as there are blocks of four lanes. Keys and values are read in
// the type that they have.

#if HWY_TARGET == HWY_SCALAR

constexpr attention_kernels attention_of_few{};

#else

struct few_panel {
    HWY_ATTR HWY_INLINE static std::int64_t queries() { return 4; }
    HWY_ATTR HWY_INLINE static std::int64_t keys_at_once() { return row_lanes() / 4; }
    HWY_ATTR HWY_INLINE static std::int64_t step() { return row_lanes(); }

    template <class D>
    HWY_ATTR HWY_INLINE static hn::VFromD<D> load(D d, const hn::TFromD<D>* from) {
        return hn::LoadDup128(d, from);
    }
    HWY_ATTR HWY_INLINE static void store(row_v values, float* to) {
        const auto first = [](four_v a, four_v) HWY_ATTR { return a; };
        hn::StoreU(joined_blocks(values, first), four_d(), to);
    }
    template <class Join>
    HWY_ATTR HWY_INLINE static row_v across(row_v values, const Join& join) {
        float four[4];
        hn::StoreU(joined_blocks(values, join), four_d(), four);
        return load(row_d(), four);
    }
    HWY_ATTR HWY_INLINE static row_v limited(row_v values, std::int64_t keys, row_v otherwise) {
        if (keys >= keys_at_once()) return values;
        const auto valid = hn::FirstN(row_d(), static_cast<std::size_t>(4 * keys));
        return hn::IfThenElse(valid, values, otherwise);
    }
    HWY_ATTR HWY_INLINE static void store_limited(row_v values, std::int64_t keys, float* to) {
        if (keys >= keys_at_once()) return hn::StoreU(values, row_d(), to);
        float all[row_block_elems];
        hn::StoreU(values, row_d(), all);
        std::memcpy(to, all, static_cast<std::size_t>(4 * keys) * sizeof(float));
    }
    HWY_ATTR HWY_INLINE static row_v of_keys(const float* from) {
        float all[row_block_elems];
        for (std::int64_t i = 0; i < row_lanes(); ++i) all[i] = from[i / 4];
        return hn::LoadU(row_d(), all);
    }
    HWY_ATTR HWY_INLINE static auto numbers_of_keys(std::int64_t key) {
        const hn::RebindToSigned<row_d> di;
        const auto in_vector = hn::ShiftRight<2>(hn::Iota(di, 0));
        return hn::Add(hn::Set(di, static_cast<std::int32_t>(key)), in_vector);
    }
    HWY_ATTR HWY_INLINE static row_v kept_by_key(const std::byte* cond, row_v score, row_v fill) {
        std::byte all[row_block_elems];
        for (std::int64_t i = 0; i < row_lanes(); ++i) all[i] = cond[i / 4];
        return selected(all, score, fill);
    }
};

// A row for each query, with zeros behind its last element.
HWY_ATTR inline void load_few_queries(const strided_matrix& from, std::int64_t queries,
                                      std::int64_t columns, float factor, float* to, float*) {
    const std::int64_t row_elems = padded_elems(columns);
    std::memset(to, 0, static_cast<std::size_t>(4 * row_elems) * sizeof(float));
    strided_matrix row = from;
    for (std::int64_t q = 0; q < queries; ++q, to += row_elems, row.first += from.row_bytes) {
        rows_as_f32(row, 1, columns, to);
        if (factor != 1) multiply_all(to, columns, factor);
    }
}

// How b lies: floats from a step to the next, and from a query to the next.
struct few_steps {
    std::int64_t step, query;
};

// Rows of the product that lie side by side in a: whole vectors of them, or less than one.
template <row_type Type, int Queries, int Vectors, bool Whole>
HWY_ATTR void multiply_few_columns(const panel_product& product, const few_steps& b_steps,
                                   std::int64_t first) {
    const row_d d;
    constexpr std::int64_t width = bytes_of(Type);
    const std::int64_t lanes = row_lanes(), step_bytes = product.step_bytes;
    const std::int64_t count = Whole ? lanes : product.rows - first;
    float* const c = product.c + 4 * first;
#define MASKWISE_SUM(n) [[maybe_unused]] auto s##n = hn::Zero(d);
    MASKWISE_FEW_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    if (product.goes_on) {
#define MASKWISE_VECTOR(n, s_0, s_1, s_2, s_3)                                                     \
    if constexpr (n < Vectors) load_fours(c + 4 * n * lanes, count, s##s_0, s##s_1, s##s_2, s##s_3);
        MASKWISE_FEW_FOURS(MASKWISE_VECTOR)
#undef MASKWISE_VECTOR
    }
    const std::byte* a = product.a + first * width;
    const std::int64_t ahead = asked_ahead(step_bytes, product.rows, width);
    const float* b = product.b;
    for (std::int64_t k = product.steps; k > 0; --k, a += step_bytes, b += b_steps.step) {
        for (std::int64_t v = 0; v < Vectors; ++v)
            __builtin_prefetch(a + v * lanes * width + ahead);
#define MASKWISE_SUM(n)                                                                            \
    if constexpr (n % 4 < Queries && n / 4 < Vectors) {                                            \
        const auto all = hn::Set(d, b[n % 4 * b_steps.query]);                                     \
        const std::byte* const at = a + n / 4 * lanes * width;                                     \
        singles::add_product(Whole ? load_elements<Type>(at) : load_part<Type>(at, count), all,    \
                             s##n);                                                                \
    }
        MASKWISE_FEW_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    }
#define MASKWISE_VECTOR(n, s_0, s_1, s_2, s_3)                                                     \
    if constexpr (n < Vectors)                                                                     \
        store_fours(s##s_0, s##s_1, s##s_2, s##s_3, product.factor, count, c + 4 * n * lanes);
    MASKWISE_FEW_FOURS(MASKWISE_VECTOR)
#undef MASKWISE_VECTOR
}

template <row_type Type, int Queries>
HWY_ATTR void multiply_columns_of(const panel_product& product, const few_steps& b) {
    const std::int64_t lanes = row_lanes(), many = few_at_once * lanes;
    std::int64_t first = 0;
    for (; first + many <= product.rows; first += many)
        multiply_few_columns<Type, Queries, few_at_once, true>(product, b, first);
    for (; first + lanes <= product.rows; first += lanes)
        multiply_few_columns<Type, Queries, 1, true>(product, b, first);
    if (first < product.rows) multiply_few_columns<Type, Queries, 1, false>(product, b, first);
}

template <row_type Type>
HWY_ATTR void multiply_columns(const panel_product& product, const few_steps& b) {
    switch (product.queries) {
    case 1:
        return multiply_columns_of<Type, 1>(product, b);
    case 2:
        return multiply_columns_of<Type, 2>(product, b);
    case 3:
        return multiply_columns_of<Type, 3>(product, b);
    default:
        return multiply_columns_of<Type, 4>(product, b);
    }
}

template <row_type Type>
HWY_ATTR void multiply_keys_of(const panel_product& product) {
    if (product.step_bytes == bytes_of(Type)) return singles::multiply_rows<Type>(product);
    multiply_columns<Type>(product, {1, padded_elems(product.steps)});
}

HWY_ATTR inline void multiply_few_keys(const panel_product& product) {
    if (product.type == row_type::f32) return multiply_keys_of<row_type::f32>(product);
    if (product.type == row_type::bf16) return multiply_keys_of<row_type::bf16>(product);
    multiply_keys_of<row_type::f16>(product);
}

HWY_ATTR inline void multiply_few_values(const panel_product& product) {
    const few_steps weights{4, 1};
    if (product.type == row_type::f32) return multiply_columns<row_type::f32>(product, weights);
    if (product.type == row_type::bf16) return multiply_columns<row_type::bf16>(product, weights);
    multiply_columns<row_type::f16>(product, weights);
}

#if HWY_TARGET == HWY_AVX3
constexpr auto* multiply_few_pairs = pairs::multiply_rows<row_type::f32>;
#else
constexpr void (*multiply_few_pairs)(const panel_product&) = nullptr;
#endif

constexpr attention_kernels attention_by_fours() {
    attention_kernels made = attention;
    made.panel = few_panel::queries;
    made.multiply_keys = multiply_few_keys;
    made.multiply_values = multiply_few_values;
    made.multiply_key_pairs = multiply_few_pairs;
    made.multiply_value_pairs = nullptr;
    made.weigh = panel_weigh<few_panel>;
    made.finish = panel_finish<few_panel>;
    made.exponentiate = panel_exponentiate<few_panel>;
    made.normalize = panel_normalize<few_panel>;
    made.merge = panel_merge<few_panel>;
    made.load_queries = load_few_queries;
    made.load_panel = panel_load<few_panel>;
    made.load_conds = panel_load_conds<few_panel>;
    made.store_panel = panel_store<few_panel>;
    made.takes_any_type = true;
    made.keys_together = 16; // of vectors of 2048 bits
    return made;
}

constexpr attention_kernels attention_of_few = attention_by_fours();

#endif
