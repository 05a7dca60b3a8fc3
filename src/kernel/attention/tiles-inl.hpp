// Products by AMX tiles, for one Highway target. Queries are the columns of a tile; in other
// kernels, queries are the lanes of a vector. So keys need no repacking, and other kernels do not
// depend on tiles. `Tiles` has the instructions; tests emulate them in C++.

#if defined(MASKWISE_KERNEL_ATTENTION_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_TILES_INL
#undef MASKWISE_KERNEL_ATTENTION_TILES_INL
#else
#define MASKWISE_KERNEL_ATTENTION_TILES_INL
#endif

#include "kernel/attention/move-inl.hpp"
#include "kernel/attention/tile_layout.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// Uses assembly, because the compilers' intrinsics take tile numbers from macros only. Intrinsics
// would also require that all callers are compiled for AMX.
struct amx_tiles {
    static void configure() {
        struct alignas(64) configuration {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
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

constexpr auto tile_columns = static_cast<std::int64_t>(hn::MaxLanes(f32_tag()));
constexpr std::int64_t tile_panel_bytes = 2 * tile_columns * bytes_of(elem_type::f32);

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

// A product in tiles of 16 rows, for one or two vectors of queries. Tiles 0 and 1 hold the sums of
// even blocks of 16 rows, and tiles 2 and 3 the sums of odd blocks. So one block is stored while
// the next block is multiplied.
template <int Vectors, class Tiles>
struct tile_product {
    const panel_product product;
    Tiles tiles = {};
    tile_buffer buffer; // not initialized

    explicit tile_product(const panel_product& whole) : product(whole) {}

    HWY_ATTR HWY_INLINE std::int64_t rows_from(std::int64_t first) const {
        return std::min(tile_rows, product.rows - first);
    }
    HWY_ATTR HWY_INLINE float* sums_of(std::int64_t first, int vector) const {
        return product.c + first * 2 * tile_columns + vector * tile_columns;
    }

    template <int Tile>
    HWY_ATTR HWY_INLINE void load(tile_source src, std::int64_t row_count, std::int64_t elems,
                                  std::int64_t whole_elems) {
        if (row_count != tile_rows || elems != whole_elems)
            src = padded_tile(src, row_count, elems, buffer);
        tiles.template load<Tile>(src.first, src.row_bytes);
    }

    template <int Tile>
    HWY_ATTR HWY_INLINE void begin_sums(std::int64_t first, int vector) {
        if (!product.accumulates) return tiles.template zero<Tile>();
        load<Tile>({sums_of(first, vector), tile_panel_bytes}, rows_from(first), tile_columns,
                   tile_columns);
    }

    template <int Tile>
    HWY_ATTR HWY_INLINE void store_sums(std::int64_t first, int vector) {
        float* const c = sums_of(first, vector);
        const std::int64_t row_count = rows_from(first);
        if (row_count == tile_rows) return tiles.template store<Tile>(c, tile_panel_bytes);
        tiles.template store<Tile>(buffer.elements, tile_pairs * bytes_of(elem_type::f32));
        for (std::int64_t r = 0; r < row_count; ++r)
            hn::StoreU(hn::LoadU(f32_tag(), buffer.elements + r * tile_pairs), f32_tag(),
                       c + r * 2 * tile_columns);
    }

    template <int Parity>
    HWY_ATTR HWY_INLINE void add_block(std::int64_t first) {
        constexpr int sum = 2 * Parity, a = first_a_tile + Parity, b = first_b_tile;
        const std::int64_t row_count = rows_from(first);
        begin_sums<sum>(first, 0);
        if constexpr (Vectors == 2) begin_sums<sum + 1>(first, 1);
        const std::byte* src = product.a + first * product.row_bytes;
        const float* b_rows = product.b;
        for (std::int64_t rest = product.steps; rest > 0; rest -= tile_pairs) {
            const std::int64_t pairs = std::min(tile_pairs, rest);
            load<a>({src, product.row_bytes}, row_count, pairs, tile_pairs);
            load<b>({b_rows, tile_panel_bytes}, pairs, tile_columns, tile_columns);
            tiles.template add_products<sum, a, b>();
            if constexpr (Vectors == 2) {
                load<b + 1>({b_rows + tile_columns, tile_panel_bytes}, pairs, tile_columns,
                            tile_columns);
                tiles.template add_products<sum + 1, a, b + 1>();
            }
            src += tile_pairs * bytes_of(elem_type::f32);
            b_rows += tile_pairs * 2 * tile_columns;
        }
    }

    template <int Parity>
    HWY_ATTR HWY_INLINE void store_block(std::int64_t first) {
        store_sums<2 * Parity>(first, 0);
        if constexpr (Vectors == 2) store_sums<2 * Parity + 1>(first, 1);
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
    for (std::int64_t lane = 0; lane < product.queries; lane += tile_columns) {
        const auto factor = hn::LoadU(d, product.factor + lane);
        if (hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0F)))) continue;
        float* c = product.c + lane;
        for (std::int64_t row = 0; row < product.rows; ++row, c += 2 * tile_columns)
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
    if (product.queries <= tile_columns)
        tile_product<1, Tiles>(product).run();
    else
        tile_product<2, Tiles>(product).run();
}

template <class Tiles>
constexpr attention_kernels attention_by_tiles(const attention_kernels& wide) {
    attention_kernels kernels = wide;
    kernels.multiply_key_pairs = kernels.multiply_value_pairs = multiply_by_tiles<Tiles>;
    kernels.load_pairs = rows_as_transposed_pairs;
    kernels.begin_products = Tiles::configure;
    kernels.end_products = Tiles::release;
    return kernels;
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_TILES_INL
