#include "base/cpu.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace maskwise {
namespace {

class native_reader final : public cpu_reader {
public:
    registers cpuid([[maybe_unused]] std::uint32_t leaf,
                    [[maybe_unused]] std::uint32_t subleaf) const override {
        registers r;
#if defined(__x86_64__)
        __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
#endif
        return r;
    }

    std::uint64_t enabled_states() const override {
#if defined(__x86_64__)
        constexpr std::uint32_t osxsave = 1U << 27;
        if ((cpuid(1, 0).ecx & osxsave) == 0) return 0;
        std::uint32_t low = 0, high = 0;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return static_cast<std::uint64_t>(high) << 32 | low;
#else
        return 0;
#endif
    }

    std::uint64_t hwcap() const override {
#if defined(__aarch64__)
        return getauxval(AT_HWCAP);
#else
        return 0;
#endif
    }
};

} // namespace

const cpu_reader& native_cpu() {
    static const native_reader reader;
    return reader;
}

} // namespace maskwise
