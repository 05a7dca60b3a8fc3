#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace maskwise {

// Instruction sets that kernels are compiled for, lowest first within an architecture. The names
// are the values of MASKWISE_MAX_ISA.
enum class isa : std::uint8_t { scalar, sse4, avx2, avx512, amx, neon, neon_bf16 };

std::string_view to_string(isa value);

// The source of CPU facts, so that tests can simulate any CPU.
class cpu_reader {
public:
    struct registers {
        std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
    };
    virtual ~cpu_reader() = default;
    // x86: a CPUID leaf and subleaf; all zero if the CPU does not have the leaf.
    virtual registers cpuid(std::uint32_t, std::uint32_t) const { return {}; }
    // x86: XCR0, the register states that the operating system saves; 0 without OSXSAVE.
    virtual std::uint64_t enabled_states() const { return 0; }
    // Arm: AT_HWCAP and AT_HWCAP2.
    virtual std::uint64_t hwcap() const { return 0; }
    virtual std::uint64_t hwcap2() const { return 0; }
};

const cpu_reader& native_cpu();

// All instruction sets that the CPU and the operating system support, lowest first; never empty.
std::vector<isa> supported_isas(const cpu_reader& cpu);

// Whether the CPU has AVX512_BF16: dot products of bf16 with f32 sums. isa::avx512 does not imply
// AVX512_BF16.
bool has_bf16_products(const cpu_reader& cpu);

// Whether the CPU's bf16 products are faster than f32 multiply-adds. False without bf16 products.
bool gains_by_bf16_products(const cpu_reader& cpu);

// Whether the CPU has AMX, matrix products in hardware.
bool has_matrix_products(const cpu_reader& cpu);

// Whether oneDNN may use AMX under this value of ONEDNN_MAX_CPU_ISA.
bool onednn_has_matrix_products(const cpu_reader& cpu, std::string_view onednn_max_isa);

// Whether the operating system permits this process to use AMX's registers. The first call requests
// the permission, which enlarges the signal frames of threads that use AMX. So call this only if a
// plan uses AMX or MASKWISE_MAX_ISA names AMX. If the CPU has AMX, a denial prints one verbose
// line. Thread-safe.
bool may_use_tiles();

// Returns the highest of `supported` that both caps allow. `max_isa` and `onednn_max_isa` are the
// values of MASKWISE_MAX_ISA and ONEDNN_MAX_CPU_ISA. An empty value sets no cap. neon_bf16 is
// chosen only if max_isa names it, because it has run in emulation only. Throws argument_error if
// max_isa is unknown or not supported. An unknown onednn_max_isa sets no cap, because oneDNN
// defines that variable.
isa choose_isa(const std::vector<isa>& supported, std::string_view max_isa,
               std::string_view onednn_max_isa);

// The instruction set of plans in this process. The first call decides by choose_isa, with this
// machine's CPU and environment variables. The system may still deny AMX: see may_use_tiles. Each
// call throws argument_error if choose_isa does, or if MASKWISE_MAX_ISA names AMX and the system
// denies AMX. Thread-safe.
isa active_isa();

} // namespace maskwise
