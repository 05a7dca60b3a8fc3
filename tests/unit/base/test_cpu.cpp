#include "base/cache.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace maskwise {
namespace {

// Simulates a CPU with the CPUID leaves in `leaves`; other leaves are zero.
class fake_cpu final : public cpu_reader {
public:
    std::map<std::pair<std::uint32_t, std::uint32_t>, registers> leaves;
    std::uint64_t states = 0;
    std::uint64_t capabilities = 0, more_capabilities = 0;

    registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) const override {
        const auto entry = leaves.find({leaf, subleaf});
        return entry == leaves.end() ? registers{} : entry->second;
    }
    std::uint64_t enabled_states() const override { return states; }
    std::uint64_t hwcap() const override { return capabilities; }
    std::uint64_t hwcap2() const override { return more_capabilities; }
};

constexpr std::uint32_t bits(std::initializer_list<int> set) {
    std::uint32_t value = 0;
    for (const int bit : set) value |= 1U << bit;
    return value;
}

#if defined(__aarch64__)

TEST(supported_isas, reads_the_hwcaps_of_an_arm_cpu) {
    fake_cpu cpu;
    EXPECT_EQ(supported_isas(cpu), std::vector<isa>{isa::scalar});
    cpu.capabilities = bits({22}); // SVE without AES; the NEON kernels require AES
    EXPECT_EQ(supported_isas(cpu), std::vector<isa>{isa::scalar});
    cpu.capabilities = bits({3});
    EXPECT_EQ(supported_isas(cpu), (std::vector<isa>{isa::scalar, isa::neon}));
}

#if !defined(__clang__)

TEST(supported_isas, finds_products_of_bf16_on_arm) {
    fake_cpu cpu;
    cpu.more_capabilities = bits({14});
    EXPECT_EQ(supported_isas(cpu), std::vector<isa>{isa::scalar});
    cpu.capabilities = bits({3});
    EXPECT_EQ(supported_isas(cpu), (std::vector<isa>{isa::scalar, isa::neon, isa::neon_bf16}));
    cpu.more_capabilities = ~std::uint64_t{bits({14})};
    EXPECT_EQ(supported_isas(cpu), (std::vector<isa>{isa::scalar, isa::neon}));
}

#endif

#else

fake_cpu skylake_server() {
    fake_cpu cpu;
    cpu.leaves[{1, 0}].ecx = bits({1, 9, 12, 19, 20, 25, 27, 28, 29});
    cpu.leaves[{7, 0}].ebx = bits({3, 5, 8, 16, 17, 28, 30, 31});
    cpu.leaves[{0x80000001U, 0}].ecx = bits({5});
    cpu.states = bits({1, 2, 5, 6, 7});
    return cpu;
}

TEST(supported_isas, finds_every_set_of_an_avx512_cpu) {
    EXPECT_EQ(supported_isas(skylake_server()),
              (std::vector<isa>{isa::scalar, isa::sse4, isa::avx2, isa::avx512}));
}

TEST(supported_isas, finds_tiles_that_are_large_enough_and_saved) {
    fake_cpu cpu = skylake_server();
    cpu.leaves[{7, 0}].edx = bits({22, 24});
    cpu.leaves[{7, 1}].eax = bits({5});
    cpu.leaves[{0x1D, 1}] = {1024U << 16 | 8192, 8U << 16 | 64, 16, 0};
    cpu.states |= std::uint64_t{3} << 17;
    EXPECT_EQ(supported_isas(cpu).back(), isa::amx);
    const auto without = [&](auto change) {
        fake_cpu less = cpu;
        change(less);
        EXPECT_EQ(supported_isas(less).back(), isa::avx512);
    };
    without([](fake_cpu& less) { less.leaves[{7, 0}].edx = bits({24}); });
    without([](fake_cpu& less) { less.leaves[{7, 1}].eax = 0; });
    without([](fake_cpu& less) { less.leaves[{7, 0}].edx = bits({22}); });
    without([](fake_cpu& less) { less.states &= ~(std::uint64_t{1} << 17); });
    without([](fake_cpu& less) { less.states &= ~(std::uint64_t{1} << 18); });
    without([](fake_cpu& less) { less.leaves[{0x1D, 1}].ebx = 4U << 16 | 64; });
    without([](fake_cpu& less) { less.leaves[{0x1D, 1}].ebx = 8U << 16 | 32; });
    without([](fake_cpu& less) { less.leaves[{0x1D, 1}].ecx = 8; });
}

TEST(may_use_tiles, is_refused_without_the_hardware) {
    if (!has_matrix_products(native_cpu())) {
        EXPECT_FALSE(may_use_tiles());
    }
}

TEST(onednn_has_matrix_products, is_true_unless_a_cap_excludes_them) {
    fake_cpu cpu = skylake_server();
    EXPECT_FALSE(onednn_has_matrix_products(cpu, ""));
    cpu.leaves[{7, 0}].edx = bits({24});
    for (const char* word : {"", "DEFAULT", "AVX512_CORE_AMX", "avx10_1_512_amx_fp16", "unknown"})
        EXPECT_TRUE(onednn_has_matrix_products(cpu, word)) << word;
    for (const char* word : {"SSE41", "AVX2", "avx512_core_bf16", "AVX512_CORE_FP16"})
        EXPECT_FALSE(onednn_has_matrix_products(cpu, word)) << word;
}

TEST(has_bf16_products, reads_subleaf_1) {
    fake_cpu cpu = skylake_server();
    EXPECT_FALSE(has_bf16_products(cpu));
    cpu.leaves[{7, 1}].eax = bits({5});
    EXPECT_TRUE(has_bf16_products(cpu));
}

TEST(gains_by_bf16_products, is_true_for_amd_only) {
    fake_cpu cpu = skylake_server();
    cpu.leaves[{7, 1}].eax = bits({5});
    EXPECT_FALSE(gains_by_bf16_products(cpu)); // an unmeasured vendor
    cpu.leaves[{0, 0}].ecx = 0x6C65746E;       // GenuineIntel
    EXPECT_FALSE(gains_by_bf16_products(cpu));
    cpu.leaves[{0, 0}].ecx = 0x444D4163; // AuthenticAMD
    EXPECT_TRUE(gains_by_bf16_products(cpu));
    cpu.leaves[{7, 1}].eax = 0;
    EXPECT_FALSE(gains_by_bf16_products(cpu));
}

TEST(supported_isas, needs_states_that_the_system_saves) {
    fake_cpu cpu = skylake_server();
    cpu.states = bits({1, 2}); // no ZMM saved: a kernel booted without AVX-512
    EXPECT_EQ(supported_isas(cpu).back(), isa::avx2);
    cpu.states = 0;
    EXPECT_EQ(supported_isas(cpu).back(), isa::sse4);
}

TEST(supported_isas, needs_every_feature_of_a_set) {
    for (const int missing : {16, 17, 28, 30, 31}) {
        fake_cpu cpu = skylake_server();
        cpu.leaves[{7, 0}].ebx &= ~bits({missing});
        EXPECT_EQ(supported_isas(cpu).back(), isa::avx2) << missing;
    }
    for (const int missing : {3, 5, 8}) {
        fake_cpu cpu = skylake_server();
        cpu.leaves[{7, 0}].ebx &= ~bits({missing});
        EXPECT_EQ(supported_isas(cpu).back(), isa::sse4) << missing;
    }
    EXPECT_EQ(supported_isas(fake_cpu()), std::vector<isa>{isa::scalar});
}

#endif

const std::vector<isa> all_x86{isa::scalar, isa::sse4, isa::avx2, isa::avx512};

TEST(choose_isa, chooses_the_highest_without_caps) {
    EXPECT_EQ(choose_isa(all_x86, "", ""), isa::avx512);
    EXPECT_EQ(choose_isa({isa::scalar, isa::sse4}, "", ""), isa::sse4);
}

TEST(choose_isa, obeys_maskwise_max_isa) {
    for (const isa wanted : all_x86) EXPECT_EQ(choose_isa(all_x86, to_string(wanted), ""), wanted);
}

TEST(choose_isa, chooses_amx_by_default) {
    std::vector<isa> supported = all_x86;
    supported.push_back(isa::amx);
    EXPECT_EQ(choose_isa(supported, "", ""), isa::amx);
    EXPECT_EQ(choose_isa(supported, "avx512", ""), isa::avx512);
    EXPECT_EQ(choose_isa(supported, "", "AVX512_CORE_AMX"), isa::amx);
    EXPECT_EQ(choose_isa(supported, "", "AVX512_CORE_FP16"), isa::avx512);
    EXPECT_EQ(choose_isa(supported, "amx", "avx512_core_bf16"), isa::avx512);
    EXPECT_EQ(choose_isa(supported, "amx", "AVX2"), isa::avx2);
    EXPECT_THROW(choose_isa(all_x86, "amx", ""), argument_error);
}

TEST(choose_isa, chooses_bf16_products_on_arm_only_by_name) {
    const std::vector<isa> all_arm{isa::scalar, isa::neon, isa::neon_bf16};
    EXPECT_EQ(choose_isa(all_arm, "", ""), isa::neon);
    for (const isa wanted : all_arm)
        EXPECT_EQ(choose_isa(all_arm, to_string(wanted), "AVX2"), wanted); // an x86 cap
    EXPECT_THROW(choose_isa({isa::scalar, isa::neon}, "neon_bf16", ""), argument_error);
}

TEST(choose_isa, refuses_unknown_and_unsupported_sets) {
    EXPECT_THROW(choose_isa(all_x86, "avx1024", ""), argument_error);
    EXPECT_THROW(choose_isa(all_x86, "AVX2", ""), argument_error);
    EXPECT_THROW(choose_isa({isa::scalar, isa::sse4}, "avx512", ""), argument_error);
    EXPECT_TRUE(test::has(test::refusal<argument_error>([] {
                              choose_isa({isa::scalar, isa::sse4}, "avx2", "");
                          }),
                          {"avx2", "scalar|sse4"}));
}

TEST(choose_isa, obeys_onednn_max_cpu_isa) {
    EXPECT_EQ(choose_isa(all_x86, "", "SSE41"), isa::sse4);
    EXPECT_EQ(choose_isa(all_x86, "", "avx2"), isa::avx2);
    EXPECT_EQ(choose_isa(all_x86, "", "AVX2_VNNI_2"), isa::avx2);
    EXPECT_EQ(choose_isa(all_x86, "", "AVX512_CORE_AMX"), isa::avx512);
    EXPECT_EQ(choose_isa(all_x86, "", "something new"), isa::avx512);
    EXPECT_EQ(choose_isa(all_x86, "sse4", "AVX2"), isa::sse4);
    EXPECT_EQ(choose_isa(all_x86, "avx2", "SSE41"), isa::sse4);
}

cpu_reader::registers cache_leaf(std::uint32_t type, std::uint32_t level, std::uint32_t kilobytes,
                                 std::uint32_t threads) {
    constexpr std::uint32_t ways = 16, line = 64;
    return {type | level << 5 | (threads - 1) << 14, (ways - 1) << 22 | (line - 1),
            kilobytes * 1024 / ways / line - 1, 0};
}

TEST(read_caches, divides_shared_caches) {
    fake_cpu cpu;
    cpu.leaves[{4, 0}] = cache_leaf(1, 1, 32, 2);
    cpu.leaves[{4, 1}] = cache_leaf(2, 1, 64, 2); // an instruction cache
    cpu.leaves[{4, 2}] = cache_leaf(3, 2, 1024, 2);
    cpu.leaves[{4, 3}] = cache_leaf(3, 3, 32768, 16);
    const cache_facts facts = read_caches(cpu);
    EXPECT_EQ(facts.l1_bytes, 32 << 10);
    EXPECT_EQ(facts.l1_ways, 16);
    EXPECT_EQ(facts.l2_bytes, 1024 << 10);
    EXPECT_EQ(facts.last_level_bytes, 2 << 20);
}

// A virtual machine with two cores may report the cache of the whole socket.
TEST(read_caches, limits_the_last_level_cache_per_core) {
    fake_cpu cpu;
    cpu.leaves[{0, 0}].ecx = 0x444d4163; // AuthenticAMD
    cpu.leaves[{0x8000001dU, 0}] = cache_leaf(1, 1, 48, 1);
    cpu.leaves[{0x8000001dU, 1}] = cache_leaf(3, 2, 1024, 1);
    cpu.leaves[{0x8000001dU, 2}] = cache_leaf(3, 3, 32768, 2);
    EXPECT_EQ(read_caches(cpu).last_level_bytes, 4 << 20);
}

TEST(read_caches, has_defaults_for_a_cpu_without_leaves) {
    const cache_facts facts = read_caches(fake_cpu());
    EXPECT_GE(facts.l1_bytes, 16 << 10);
    EXPECT_GE(facts.l1_ways, 4);
    EXPECT_GE(facts.last_level_bytes, facts.l2_bytes);
}

} // namespace
} // namespace maskwise
