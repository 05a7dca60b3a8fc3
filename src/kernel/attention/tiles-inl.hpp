// Products by AMX tiles, for one Highway target. Queries are the columns of a tile; in other
// kernels, queries are the lanes of a vector. So keys need no repacking, and other kernels do not
// depend on tiles. `Tiles` has the instructions; tests emulate them in C++.

#if defined(MASKWISE_KERNEL_ATTENTION_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_TILES_INL
#undef MASKWISE_KERNEL_ATTENTION_TILES_INL
#else
#define MASKWISE_KERNEL_ATTENTION_TILES_INL
#endif

#include "kernel/attention/narrow_panel-inl.hpp"
#include "kernel/attention/tile_layout.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// Uses assembly, because the compilers' intrinsics take tile numbers from macros only. Intrinsics
// would also require that all callers are compiled for AMX.
template <int Columns>
struct amx_tiles {
    static constexpr int columns = Columns;

    static void configure() {
        constexpr std::uint16_t a = 4 * tile_pairs, b = 4 * Columns;
        struct alignas(64) configuration {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t row_bytes[16] = {b, b, b, b, a, a, b, b};
            std::uint8_t row_counts[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        };
        static_assert(sizeof(configuration) == 64);
        const configuration eight_tiles;
        asm volatile("ldtilecfg %0" : : "m"(eight_tiles));
    }
    static void release() { asm volatile("tilerelease" : : : "memory"); }

    template <int Tile>
    HWY_INLINE static void zero() {
        asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
    }
    template <int Tile>
    HWY_INLINE static void load(const void* src, std::int64_t row_bytes) {
        asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(src), "r"(row_bytes), "i"(Tile)
                     : "memory");
    }
    template <int Tile>
    HWY_INLINE static void store(void* dst, std::int64_t row_bytes) {
        asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(dst), "r"(row_bytes), "i"(Tile)
                     : "memory");
    }
    template <int Sum, int A, int B>
    HWY_INLINE static void add_products() {
        asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
    }
};

#endif

struct alignas(64) tile_buffer {
    float elements[tile_rows * tile_pairs];
};

struct tile_source {
    const void* first;
    std::int64_t row_bytes;
};

// Copies a tail tile and pads it with zeros, because a product with arbitrary memory could be NaN.
// Not inlined, so that the loop over full tiles keeps its addresses in registers.
HWY_ATTR HWY_NOINLINE inline tile_source padded_tile(tile_source src, std::int64_t row_count,
                                                     std::int64_t elems, tile_buffer& buffer) {
    buffer = {};
    const auto bytes = static_cast<std::size_t>(elems * bytes_of(elem_type::f32));
    for (std::int64_t r = 0; r < row_count; ++r)
        std::memcpy(buffer.elements + r * tile_pairs,
                    static_cast<const std::byte*>(src.first) + r * src.row_bytes, bytes);
    return {buffer.elements, tile_pairs * bytes_of(elem_type::f32)};
}

// A product in tiles of 16 rows, for one or two tiles of a panel of queries. Tiles 0 and 1 hold the
// sums of even blocks of 16 rows, and tiles 2 and 3 the sums of odd blocks. So one block is stored
// while the next block is multiplied.
template <int QueryTiles, int Panel, class Tiles>
struct tile_product {
    static constexpr std::int64_t columns = Tiles::columns,
                                  panel_bytes = Panel * bytes_of(elem_type::f32);
    static constexpr bool is_narrow = Panel == Tiles::columns; // memory limits the product
    const panel_product product;
    Tiles tiles = {};
    tile_buffer buffer; // not initialized

    explicit tile_product(const panel_product& whole) : product(whole) {}

    HWY_ATTR HWY_INLINE std::int64_t rows_from(std::int64_t first) const {
        return std::min(tile_rows, product.rows - first);
    }
    HWY_ATTR HWY_INLINE float* sums_of(std::int64_t first, int query_tile) const {
        return product.c + first * Panel + query_tile * columns;
    }

    template <int Tile>
    HWY_ATTR HWY_INLINE void load(tile_source src, std::int64_t row_count, std::int64_t elems,
                                  std::int64_t whole_elems) {
        if (row_count != tile_rows || elems != whole_elems)
            src = padded_tile(src, row_count, elems, buffer);
        tiles.template load<Tile>(src.first, src.row_bytes);
    }

    template <int Tile>
    HWY_ATTR HWY_INLINE void begin_sums(std::int64_t first, int query_tile) {
        if (!product.accumulates) return tiles.template zero<Tile>();
        load<Tile>({sums_of(first, query_tile), panel_bytes}, rows_from(first), columns, columns);
    }

    template <int Tile>
    HWY_ATTR HWY_INLINE void store_sums(std::int64_t first, int query_tile) {
        float* const c = sums_of(first, query_tile);
        const std::int64_t row_count = rows_from(first);
        if (row_count == tile_rows) return tiles.template store<Tile>(c, panel_bytes);
        tiles.template store<Tile>(buffer.elements, tile_pairs * bytes_of(elem_type::f32));
        for (std::int64_t r = 0; r < row_count; ++r)
            std::memcpy(c + r * Panel, buffer.elements + r * tile_pairs,
                        columns * bytes_of(elem_type::f32));
    }

    template <int Parity>
    HWY_ATTR HWY_INLINE void add_block(std::int64_t first) {
        constexpr int sum = 2 * Parity, a = first_a_tile + Parity, b = first_b_tile;
        const std::int64_t row_count = rows_from(first);
        begin_sums<sum>(first, 0);
        if constexpr (QueryTiles == 2) begin_sums<sum + 1>(first, 1);
        const std::byte* src = product.a + first * product.row_bytes;
        const float* b_rows = product.b;
        const std::int64_t ahead = prefetch_distance(product.row_bytes, product.steps, 4);
        for (std::int64_t rest = product.steps; rest > 0; rest -= tile_pairs) {
            const std::int64_t pairs = std::min(tile_pairs, rest);
            if constexpr (is_narrow)
                prefetch_rows(src + ahead, product.row_bytes, row_count, 4 * pairs);
            load<a>({src, product.row_bytes}, row_count, pairs, tile_pairs);
            load<b>({b_rows, panel_bytes}, pairs, columns, columns);
            tiles.template add_products<sum, a, b>();
            if constexpr (QueryTiles == 2) {
                load<b + 1>({b_rows + columns, panel_bytes}, pairs, columns, columns);
                tiles.template add_products<sum + 1, a, b + 1>();
            }
            src += tile_pairs * bytes_of(elem_type::f32);
            b_rows += tile_pairs * Panel;
        }
    }

    template <int Parity>
    HWY_ATTR HWY_INLINE void store_block(std::int64_t first) {
        store_sums<2 * Parity>(first, 0);
        if constexpr (QueryTiles == 2) store_sums<2 * Parity + 1>(first, 1);
    }

    HWY_ATTR void run() {
        std::int64_t first = 0;
        for (; first < product.rows; first += 2 * tile_rows) {
            add_block<0>(first);
            if (first > 0) store_block<1>(first - tile_rows);
            if (first + tile_rows < product.rows) add_block<1>(first + tile_rows);
            store_block<0>(first);
        }
        if (first > 0 && first - tile_rows < product.rows) store_block<1>(first - tile_rows);
    }
};

// Multiplies c by the factor per query; skips vectors whose factors are all 1.
HWY_ATTR inline void scale_sums(const panel_product& product) {
    const f32_tag d;
    for (std::int64_t lane = 0; lane < product.queries; lane += f32_lanes()) {
        const auto factor = hn::LoadU(d, product.factor + lane);
        if (hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0F)))) continue;
        float* c = product.c + lane;
        for (std::int64_t row = 0; row < product.rows; ++row, c += 2 * f32_lanes())
            hn::StoreU(hn::Mul(hn::LoadU(d, c), factor), d, c);
    }
}

// The steps of each row of `a` must be contiguous. rows_as_transposed_pairs writes this layout.
// With a factor, c is scaled in place first, and the tiles accumulate.
template <class Tiles>
HWY_ATTR void multiply_by_tiles(const panel_product& whole) {
    panel_product product = whole;
    if (product.factor != nullptr) {
        scale_sums(product);
        product.accumulates = true;
    }
    if (product.queries <= Tiles::columns)
        tile_product<1, 2 * Tiles::columns, Tiles>(product).run();
    else
        tile_product<2, 2 * Tiles::columns, Tiles>(product).run();
}

template <class Tiles>
constexpr attention_kernels with_tiles(attention_kernels kernels) {
    kernels.begin_products = Tiles::configure;
    kernels.end_products = Tiles::release;
    return kernels;
}

template <class Tiles>
constexpr attention_kernels attention_by_tiles(const attention_kernels& wide) {
    attention_kernels kernels = with_tiles<Tiles>(wide);
    kernels.multiply_key_pairs = kernels.multiply_value_pairs = multiply_by_tiles<Tiles>;
    kernels.load_pairs = rows_as_transposed_pairs;
    return kernels;
}

#if HWY_TARGET != HWY_SCALAR

// The queries of a narrow panel are the columns of one tile. `product` has no factor.
template <class Tiles>
HWY_ATTR void multiply_narrow_keys_by_tiles(const panel_product& product) {
    tile_product<1, Tiles::columns, Tiles>(product).run();
}

template <class Tiles>
constexpr attention_kernels narrow_attention_by_tiles(const attention_kernels& wide) {
    return attention_by_narrow_panel<narrow_panel<Tiles::columns>>(
        with_tiles<Tiles>(wide), multiply_narrow_keys_by_tiles<Tiles>);
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_TILES_INL
