// Products of attention by tiles (AMX) for one Highway target: queries are the columns of a tile,
// as they are the lanes of a vector elsewhere, so keys are read as they lie and no other kernel of
// attention knows of tiles. `Tiles` are the instructions, or emulated_tiles.

#if HWY_TARGET == HWY_AVX3

// By assembly: both compilers' functions take numbers of tiles from macros only, and would be one
// more instruction set of the functions around them.
struct amx_tiles {
    static void configure() {
        struct alignas(64) configuration {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            std::uint8_t row_counts[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        };
        static_assert(sizeof(configuration) == 64);
        const configuration all;
        asm volatile("ldtilecfg %0" : : "m"(all));
    }
    static void release() { asm volatile("tilerelease" : : : "memory"); }

    template <int Tile>
    HWY_INLINE static void zero() {
        asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
    }
    template <int Tile>
    HWY_INLINE static void load(const void* from, std::int64_t row_bytes) {
        asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(from), "r"(row_bytes), "i"(Tile)
                     : "memory");
    }
    template <int Tile>
    HWY_INLINE static void store(void* to, std::int64_t row_bytes) {
        asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(to), "r"(row_bytes), "i"(Tile)
                     : "memory");
    }
    template <int Sum, int A, int B>
    HWY_INLINE static void add_products() {
        asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
    }
};

#endif

#if !HWY_HAVE_SCALABLE

// A tile has a vector of queries.
constexpr auto tile_columns = static_cast<std::int64_t>(hn::MaxLanes(row_d()));
constexpr std::int64_t tile_panel_bytes = 2 * tile_columns * bytes_of(row_type::f32);

// Room for a tile of which memory holds a part.
struct alignas(64) near_tile {
    float at[tile_rows * tile_pairs];
};

// What lies behind the last row or pair counts as 0: a product with whatever is there could be NaN.
template <class Tiles, int Tile>
HWY_ATTR HWY_INLINE void load_part(Tiles& tiles, const void* from, std::int64_t row_bytes,
                                   std::int64_t row_count, std::int64_t elems) {
    near_tile near = {};
    const auto bytes = static_cast<std::size_t>(elems * bytes_of(row_type::f32));
    for (std::int64_t r = 0; r < row_count; ++r)
        std::memcpy(near.at + r * tile_pairs, static_cast<const std::byte*>(from) + r * row_bytes,
                    bytes);
    tiles.template load<Tile>(near.at, tile_pairs * bytes_of(row_type::f32));
}

// Rows [first, ...) of a product in tiles of 16.
template <class Tiles>
struct tile_block {
    const panel_product& product;
    Tiles& tiles;
    std::int64_t first;

    HWY_ATTR HWY_INLINE std::int64_t rows_of(int part) const {
        return std::min(tile_rows, product.rows - first - part * tile_rows);
    }
    HWY_ATTR HWY_INLINE float* sums_of(int part, int vector) const {
        return product.c + (first + part * tile_rows) * 2 * tile_columns + vector * tile_columns;
    }

    template <int Part, int Vector>
    HWY_ATTR HWY_INLINE void begin() const {
        constexpr int tile = 2 * Part + Vector;
        const float* const c = sums_of(Part, Vector);
        if (!product.goes_on)
            tiles.template zero<tile>();
        else if (rows_of(Part) == tile_rows)
            tiles.template load<tile>(c, tile_panel_bytes);
        else
            load_part<Tiles, tile>(tiles, c, tile_panel_bytes, rows_of(Part), tile_columns);
    }

    template <int Part>
    HWY_ATTR HWY_INLINE void load_a(std::int64_t step, std::int64_t pairs) const {
        constexpr int tile = first_a_tile + Part;
        const std::byte* const a = product.a + (first + Part * tile_rows) * product.row_bytes +
                                   step * bytes_of(row_type::f32);
        if (pairs == tile_pairs && rows_of(Part) == tile_rows)
            tiles.template load<tile>(a, product.row_bytes);
        else
            load_part<Tiles, tile>(tiles, a, product.row_bytes, rows_of(Part), pairs);
    }

    template <int Vector>
    HWY_ATTR HWY_INLINE void load_b(std::int64_t step, std::int64_t pairs) const {
        constexpr int tile = first_b_tile + Vector;
        const float* const b = product.b + step * 2 * tile_columns + Vector * tile_columns;
        if (pairs == tile_pairs)
            tiles.template load<tile>(b, tile_panel_bytes);
        else
            load_part<Tiles, tile>(tiles, b, tile_panel_bytes, pairs, tile_columns);
    }

    template <int Part, int Vector>
    HWY_ATTR HWY_INLINE void add() const {
        tiles
            .template add_products<2 * Part + Vector, first_a_tile + Part, first_b_tile + Vector>();
    }

    template <int Part, int Vector>
    HWY_ATTR HWY_INLINE void end() const {
        constexpr int tile = 2 * Part + Vector;
        float* c = sums_of(Part, Vector);
        if (product.factor == nullptr && rows_of(Part) == tile_rows)
            return tiles.template store<tile>(c, tile_panel_bytes);
        const row_d d;
        near_tile near;
        tiles.template store<tile>(near.at, tile_pairs * bytes_of(row_type::f32));
        for (std::int64_t r = 0; r < rows_of(Part); ++r, c += 2 * tile_columns) {
            auto sum = hn::LoadU(d, near.at + r * tile_pairs);
            if (product.factor != nullptr)
                sum = hn::MulAdd(hn::LoadU(d, c),
                                 hn::LoadU(d, product.factor + Vector * tile_columns), sum);
            hn::StoreU(sum, d, c);
        }
    }
};

// The four sums of two by two tiles hide how long one product takes.
template <int Parts, int Vectors, class Tiles>
HWY_ATTR void multiply_tile_block(const tile_block<Tiles>& block) {
    const auto for_each_sum = [](auto visit) HWY_ATTR {
        visit(std::integral_constant<int, 0>(), std::integral_constant<int, 0>());
        if constexpr (Vectors == 2)
            visit(std::integral_constant<int, 0>(), std::integral_constant<int, 1>());
        if constexpr (Parts == 2)
            visit(std::integral_constant<int, 1>(), std::integral_constant<int, 0>());
        if constexpr (Parts == 2 && Vectors == 2)
            visit(std::integral_constant<int, 1>(), std::integral_constant<int, 1>());
    };
    for_each_sum([&](auto part, auto vector) HWY_ATTR { block.template begin<part, vector>(); });
    for (std::int64_t step = 0; step < block.product.steps; step += tile_pairs) {
        const std::int64_t pairs = std::min(tile_pairs, block.product.steps - step);
        block.template load_a<0>(step, pairs);
        if constexpr (Parts == 2) block.template load_a<1>(step, pairs);
        block.template load_b<0>(step, pairs);
        if constexpr (Vectors == 2) block.template load_b<1>(step, pairs);
        for_each_sum([&](auto part, auto vector) HWY_ATTR { block.template add<part, vector>(); });
    }
    for_each_sum([&](auto part, auto vector) HWY_ATTR { block.template end<part, vector>(); });
}

template <int Vectors, class Tiles>
HWY_ATTR HWY_INLINE void multiply_tiles_by(const panel_product& product) {
    Tiles tiles;
    for (std::int64_t first = 0; first < product.rows; first += 2 * tile_rows) {
        const tile_block<Tiles> block{product, tiles, first};
        if (product.rows - first > tile_rows)
            multiply_tile_block<2, Vectors>(block);
        else
            multiply_tile_block<1, Vectors>(block);
    }
}

// Steps of a lie side by side, as rows_as_turned_pairs leaves them.
template <class Tiles>
HWY_ATTR void multiply_by_tiles(const panel_product& product) {
    if (product.queries <= tile_columns)
        multiply_tiles_by<1, Tiles>(product);
    else
        multiply_tiles_by<2, Tiles>(product);
}

// The kernels of this target, with products of bf16 by tiles.
template <class Tiles>
constexpr attention_kernels attention_by_tiles() {
    attention_kernels made = attention;
    made.multiply_key_pairs = made.multiply_value_pairs = multiply_by_tiles<Tiles>;
    made.weigh = panel_weigh<wide_panel>;
    made.load_pairs = rows_as_turned_pairs;
    made.enter = Tiles::configure;
    made.leave = Tiles::release;
    return made;
}

#endif
