// Highway compiles this file once for each instruction set.

#include "kernels/peak.hpp"

#include "kernel/kernel_table.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernel/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef MASKWISE_PEAK_LOOP
#define MASKWISE_PEAK_LOOP
namespace maskwise::bench {

// Runs `steps` steps and returns the number of multiply-adds. The pointer is null if this file does
// not measure this kind of multiply-add on the target.
using peak_loop = std::int64_t (*)(std::int64_t steps);
struct peak_loops {
    peak_loop singles; // multiply-adds of f32
    peak_loop pairs;   // dot products of pairs of bf16
};

} // namespace maskwise::bench
#endif

HWY_BEFORE_NAMESPACE();
namespace maskwise::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using tag = hn::ScalableTag<float>;

#undef MASKWISE_PEAK_ATTR
#if HWY_TARGET == HWY_AVX3
#define MASKWISE_PEAK_ATTR __attribute__((target(HWY_TARGET_STR ",avx512bf16")))
#else
#define MASKWISE_PEAK_ATTR HWY_ATTR
#endif

template <bool Pairs>
MASKWISE_PEAK_ATTR HWY_INLINE void add_product(hn::Vec<tag> factor, hn::Vec<tag>& sum) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (Pairs) {
        const auto both = reinterpret_cast<__m512bh>(factor.raw);
        sum.raw = _mm512_dpbf16_ps(sum.raw, both, both);
        return;
    }
#endif
    sum = hn::MulAdd(factor, factor, sum);
}

// 12 independent sums hide the latency of a multiply-add, and fit the registers. The factors are
// zeros, so the sums are never denormal.
template <bool Pairs>
MASKWISE_PEAK_ATTR std::int64_t run_loop(std::int64_t steps) {
    const tag d;
    auto zero = hn::Zero(d);
#define MASKWISE_PEAK_SUMS(each)                                                                   \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10)       \
        each(11)
#define MASKWISE_SUM(n)                                                                            \
    __asm__ volatile("" : "+m"(zero)); /* else the compiler merges equal sums */                   \
    auto s##n = zero;
    MASKWISE_PEAK_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    for (std::int64_t i = 0; i < steps; ++i) {
#define MASKWISE_SUM(n) add_product<Pairs>(zero, s##n);
        MASKWISE_PEAK_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    }
#define MASKWISE_SUM(n)                                                                            \
    zero = s##n;                                                                                   \
    __asm__ volatile("" : : "m"(zero));
    MASKWISE_PEAK_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
#undef MASKWISE_PEAK_SUMS
    return steps * 12 * static_cast<std::int64_t>(hn::Lanes(d)) * (Pairs ? 2 : 1);
}

#if HWY_TARGET == HWY_AVX3
constexpr peak_loops loops{run_loop<false>, run_loop<true>};
#else
constexpr peak_loops loops{run_loop<false>, nullptr};
#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maskwise::bench {
namespace {

#if HWY_ARCH_X86
// Four independent sums hide the latency of a product. All tiles contain zeros.
std::int64_t run_tiles(std::int64_t steps) {
    const attention_kernels& kernels = kernel_table_for(isa::amx).attention;
    kernels.begin_products();
    for (std::int64_t i = 0; i < steps; ++i)
        asm volatile("tdpbf16ps %tmm6, %tmm4, %tmm0\n\ttdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
                     "tdpbf16ps %tmm6, %tmm5, %tmm2\n\ttdpbf16ps %tmm7, %tmm5, %tmm3");
    kernels.end_products();
    return steps * 4 * 16 * 16 * 32;
}
#endif

peak_loops loops_of(isa target) {
    switch (target) {
#if HWY_ARCH_X86
    case isa::sse4:
        return N_SSE4::loops;
    case isa::avx2:
        return N_AVX2::loops;
    case isa::avx512:
        return N_AVX3::loops;
    case isa::amx:
        return {N_AVX3::loops.singles, may_use_tiles() ? run_tiles : nullptr};
#elif HWY_ARCH_ARM
    case isa::neon:
        return N_NEON::loops;
#endif
    default:
        return {};
    }
}

} // namespace

double measured_peak(isa target, bool in_pairs, int threads) {
    const peak_loops loops = loops_of(target);
    const peak_loop loop = in_pairs ? loops.pairs : loops.singles;
    if (loop == nullptr || (in_pairs && !has_bf16_products(native_cpu()))) return 0;
    constexpr std::int64_t steps = 2'000'000; // 4 ms of vectors, 40 ms of AMX tiles at 3 GHz
    const auto run = [&](double& rate) {
        using clock = std::chrono::steady_clock;
        for (int attempt = 0; attempt < 20; ++attempt) {
            const auto begin = clock::now();
            const auto count = static_cast<double>(loop(steps));
            const std::chrono::duration<double> took = clock::now() - begin;
            rate = std::max(rate, 2 * count / took.count());
        }
    };
    std::vector<double> rates(static_cast<std::size_t>(threads));
    std::vector<std::thread> others;
    for (double& rate : rates) others.emplace_back(run, std::ref(rate));
    for (std::thread& other : others) other.join();
    double sum = 0;
    for (const double rate : rates) sum += rate;
    return sum;
}

} // namespace maskwise::bench
#endif
