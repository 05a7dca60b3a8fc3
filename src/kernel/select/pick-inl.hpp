// The pick kernel for one Highway target: loads only selected elements of two scattered sources.
//
// Takes four loads, a store and no branch per element, so the time does not depend on the mask.
// Packing both sources before a select would read the cache lines of both.

#if defined(MASKWISE_KERNEL_SELECT_PICK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_SELECT_PICK_INL
#undef MASKWISE_KERNEL_SELECT_PICK_INL
#else
#define MASKWISE_KERNEL_SELECT_PICK_INL
#endif

#include "kernel/select/contract.hpp"
#include "kernel/target-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

template <std::size_t Width, column_class Cond>
HWY_ATTR void pick_tile_kernel(const select_tile& tile, const std::int32_t* offsets) {
    // Local copies, because the compiler assumes that a store to dst may change the tile.
    const std::int64_t rows = tile.rows, columns = tile.columns;
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::byte* const cond = tile.cond + r * tile.cond_row_bytes;
        const std::byte* const sides[] = {tile.src_1 + r * tile.src_1_row_bytes,
                                          tile.src_0 + r * tile.src_0_row_bytes};
        std::byte* const dst = tile.dst + r * tile.dst_row_bytes;
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::byte* const element_cond = Cond == column_class::unit ? cond + c : cond;
            const std::size_t side = element_is_true(element_cond) ? 1 : 0;
            std::memcpy(dst + c * static_cast<std::int64_t>(Width),
                        sides[side] + offsets[2 * c + static_cast<std::int64_t>(side)], Width);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_SELECT_PICK_INL
