// Definitions shared by all kernels of one Highway target.

#if defined(MASKWISE_KERNEL_TARGET_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_TARGET_INL
#undef MASKWISE_KERNEL_TARGET_INL
#else
#define MASKWISE_KERNEL_TARGET_INL
#endif

#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// On ARM, bf16 products have a separate kernel_table. base/cpu.cpp says why clang builds lack this
// table.
#undef MASKWISE_HAS_BF16_TABLE
#define MASKWISE_HAS_BF16_TABLE (HWY_TARGET == HWY_NEON && !HWY_COMPILER_CLANG)

#undef MASKWISE_LAMBDA_ATTR
#define MASKWISE_LAMBDA_ATTR HWY_ATTR __attribute__((always_inline))

// An element of 16 bytes occupies two lanes of 8 bytes.
template <std::size_t Width>
using lane_of = std::conditional_t<
    Width == 1, std::uint8_t,
    std::conditional_t<Width == 2, std::uint16_t,
                       std::conditional_t<Width == 4, std::uint32_t, std::uint64_t>>>;

inline HWY_ATTR const std::uint8_t* as_bytes(const std::byte* p) {
    return reinterpret_cast<const std::uint8_t*>(p);
}

inline HWY_ATTR bool element_is_true(const std::byte* cond) {
    return *as_bytes(cond) != 0;
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_TARGET_INL
