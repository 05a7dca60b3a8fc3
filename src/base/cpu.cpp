#include "base/cpu.hpp"

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/first_use.hpp"
#include "base/verbose.hpp"

#include <algorithm>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace maskwise {
namespace {

constexpr std::pair<isa, std::string_view> names[] = {
    {isa::scalar, "scalar"},       {isa::sse4, "sse4"}, {isa::avx2, "avx2"},
    {isa::avx512, "avx512"},       {isa::amx, "amx"},   {isa::neon, "neon"},
    {isa::neon_bf16, "neon_bf16"},
};

// Whether VDPBF16PS is faster than converting to f32, by vendor. Measured on one thread from
// registers, in GFLOP/s: Zen 5 reaches 279 by f32 multiply-adds and 521 by VDPBF16PS; a Xeon with
// AMX reaches 164 and 80. On CPUs of other vendors, bf16 is converted.
struct bf16_product_gain {
    std::uint32_t vendor; // CPUID 0, ecx: the last letters of the vendor's name
    bool pays;
};
constexpr bf16_product_gain bf16_product_gains[] = {
    {0x444D4163, true},  // AuthenticAMD
    {0x6C65746E, false}, // GenuineIntel
};

// The highest instruction set that each value of ONEDNN_MAX_CPU_ISA allows. Values that are not
// listed set no cap. Source: oneDNN's developer guide, "CPU dispatcher control".
constexpr std::pair<std::string_view, isa> onednn_words[] = {
    {"SSE41", isa::sse4},
    {"AVX", isa::sse4},
    {"AVX2", isa::avx2},
    {"AVX2_VNNI", isa::avx2},
    {"AVX2_VNNI_2", isa::avx2},
    {"AVX512_CORE", isa::avx512},
    {"AVX512_CORE_VNNI", isa::avx512},
    {"AVX512_CORE_BF16", isa::avx512},
    {"AVX512_CORE_FP16", isa::avx512},
    {"AVX10_1_512", isa::avx512},
};

isa onednn_cap(std::string_view word) {
    std::string upper(word);
    for (char& c : upper)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    for (const auto& [known, cap] : onednn_words)
        if (known == upper) return cap;
    return isa::amx;
}

bool has_bits(std::uint64_t value, std::initializer_list<int> bits) {
    return std::all_of(bits.begin(), bits.end(), [&](int bit) { return (value >> bit & 1) != 0; });
}

constexpr int amx_bf16 = 22, amx_tile = 24; // bits of edx in CPUID leaf 7

// Requires eight tiles of 16 rows of 64 bytes, bf16 products by AMX and by AVX512_BF16, and an
// operating system that saves the tile registers.
bool has_bf16_tiles(const cpu_reader& cpu) {
    const auto palette = cpu.cpuid(0x1D, 1);
    return has_bf16_products(cpu) && has_bits(cpu.cpuid(7, 0).edx, {amx_bf16, amx_tile}) &&
           has_bits(cpu.enabled_states(), {17, 18}) && palette.ebx >> 16 >= 8 &&
           (palette.ebx & 0xFFFF) >= 64 && (palette.ecx & 0xFFFF) >= 16;
}

// Checks the features that Highway's compiler targets use (hwy/ops/set_macros-inl.h).
[[maybe_unused]] std::vector<isa> supported_x86(const cpu_reader& cpu) {
    std::vector<isa> isas{isa::scalar};
    const auto leaf_1 = cpu.cpuid(1, 0);
    const auto leaf_7 = cpu.cpuid(7, 0);
    const std::uint64_t states = cpu.enabled_states();
    // SSSE3, SSE4.1, SSE4.2, PCLMULQDQ, AES
    if (!has_bits(leaf_1.ecx, {9, 19, 20, 1, 25})) return isas;
    isas.push_back(isa::sse4);
    // AVX, FMA, F16C; BMI1, AVX2, BMI2; LZCNT; the system saves XMM and YMM
    const bool avx2 = has_bits(leaf_1.ecx, {28, 12, 29}) && has_bits(leaf_7.ebx, {3, 5, 8}) &&
                      has_bits(cpu.cpuid(0x80000001U, 0).ecx, {5}) && has_bits(states, {1, 2});
    if (!avx2) return isas;
    isas.push_back(isa::avx2);
    // AVX512 F, DQ, CD, BW, VL; the system saves mask registers and ZMM
    if (!has_bits(leaf_7.ebx, {16, 17, 28, 30, 31}) || !has_bits(states, {5, 6, 7})) return isas;
    isas.push_back(isa::avx512);
    if (has_bf16_tiles(cpu)) isas.push_back(isa::amx);
    return isas;
}

// clang 14 assembles Arm's bf16 instructions only if all code is compiled for them.
#if defined(__clang__)
constexpr bool has_bf16_kernels = false;
#else
constexpr bool has_bf16_kernels = true;
#endif

[[maybe_unused]] std::vector<isa> supported_arm(const cpu_reader& cpu) {
    constexpr int hwcap_aes = 3, hwcap2_bf16 = 14;
    std::vector<isa> isas{isa::scalar};
    if (!has_bits(cpu.hwcap(), {hwcap_aes})) return isas;
    isas.push_back(isa::neon);
    if (has_bf16_kernels && has_bits(cpu.hwcap2(), {hwcap2_bf16})) isas.push_back(isa::neon_bf16);
    return isas;
}

std::string list_names(const std::vector<isa>& supported) {
    std::string text;
    for (const isa value : supported) {
        if (!text.empty()) text += '|';
        text += to_string(value);
    }
    return text;
}

// neon_bf16 has run in emulation only, so it is used only if MASKWISE_MAX_ISA names it.
isa highest_by_default(const std::vector<isa>& supported) {
    return supported.back() == isa::neon_bf16 ? isa::neon : supported.back();
}

isa parse_max_isa(const std::vector<isa>& supported, std::string_view max_isa) {
    for (const isa value : supported)
        if (to_string(value) == max_isa) return value;
    throw argument_error("MASKWISE_MAX_ISA=" + std::string(max_isa) +
                         " is unknown or not supported by this CPU, which has " +
                         list_names(supported));
}

class native_reader final : public cpu_reader {
#if defined(__x86_64__)
    registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) const override {
        registers r;
        __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
        return r;
    }

    std::uint64_t enabled_states() const override {
        constexpr std::uint32_t osxsave = 1U << 27;
        if ((cpuid(1, 0).ecx & osxsave) == 0) return 0;
        std::uint32_t low = 0, high = 0;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return static_cast<std::uint64_t>(high) << 32 | low;
    }
#elif defined(__aarch64__)
    std::uint64_t hwcap() const override {
        return getauxval(AT_HWCAP);
    }
    std::uint64_t hwcap2() const override {
        return getauxval(AT_HWCAP2);
    }
#endif
};

} // namespace

const cpu_reader& native_cpu() {
    static const native_reader reader;
    return reader;
}

std::string_view to_string(isa value) {
    for (const auto& [known, name] : names)
        if (known == value) return name;
    return "?";
}

std::vector<isa> supported_isas(const cpu_reader& cpu) {
#if defined(__aarch64__)
    return supported_arm(cpu);
#else
    return supported_x86(cpu);
#endif
}

bool has_bf16_products([[maybe_unused]] const cpu_reader& cpu) {
#if defined(__aarch64__)
    return false;
#else
    return has_bits(cpu.cpuid(7, 1).eax, {5});
#endif
}

bool gains_by_bf16_products(const cpu_reader& cpu) {
    const std::uint32_t vendor = cpu.cpuid(0, 0).ecx;
    return has_bf16_products(cpu) &&
           std::ranges::any_of(bf16_product_gains, [&](const bf16_product_gain& gain) {
               return gain.vendor == vendor && gain.pays;
           });
}

bool has_matrix_products([[maybe_unused]] const cpu_reader& cpu) {
#if defined(__aarch64__)
    return false;
#else
    return has_bits(cpu.cpuid(7, 0).edx, {amx_tile});
#endif
}

bool may_use_tiles() {
#if defined(__x86_64__)
    constexpr long request_permission = 0x1023,
                   tile_data = 18; // not in Debian 12's asm/prctl.h
    return at_first_use<[] {
        const bool is_granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
        if (!is_granted && has_matrix_products(native_cpu()) && verbose_level() != 0)
            print_verbose("amx,the system denies AMX to this process: bf16 runs on AVX-512");
        return is_granted;
    }>();
#else
    return false;
#endif
}

bool onednn_has_matrix_products(const cpu_reader& cpu, std::string_view onednn_max_isa) {
    return has_matrix_products(cpu) && onednn_cap(onednn_max_isa) == isa::amx;
}

isa choose_isa(const std::vector<isa>& supported, std::string_view max_isa,
               std::string_view onednn_max_isa) {
    const isa chosen =
        max_isa.empty() ? highest_by_default(supported) : parse_max_isa(supported, max_isa);
    return chosen <= isa::amx ? std::min(chosen, onednn_cap(onednn_max_isa)) : chosen;
}

isa active_isa() {
    return at_first_use<[] {
        const std::string_view max_isa = read_environment("MASKWISE_MAX_ISA").value_or("");
        const isa chosen = choose_isa(supported_isas(native_cpu()), max_isa,
                                      read_environment("ONEDNN_MAX_CPU_ISA").value_or(""));
        if (max_isa == "amx" && chosen == isa::amx && !may_use_tiles())
            throw argument_error("MASKWISE_MAX_ISA=amx: the system denies AMX to this process");
        return chosen;
    }>();
}

} // namespace maskwise
