#include "base/cache.hpp"

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/first_use.hpp"

#include <algorithm>
#include <string>

namespace maskwise {
namespace {

struct cache_level {
    int level = 0; // 0: no more caches
    bool holds_data = false;
    std::int64_t bytes = 0;
    std::int64_t ways = 0;
    std::int64_t sharing_threads = 1;
};

// Intel's leaf 4 and AMD's leaf 0x8000001D have the same layout.
cache_level decode(const cpu_reader::registers& r) {
    const std::uint32_t type = r.eax & 0x1f;
    if (type == 0) return {};
    cache_level result;
    result.level = static_cast<int>(r.eax >> 5 & 7);
    result.holds_data = type == 1 || type == 3;
    result.sharing_threads = static_cast<std::int64_t>(r.eax >> 14 & 0xfff) + 1;
    result.ways = (r.ebx >> 22 & 0x3ff) + 1;
    const std::int64_t line = (r.ebx & 0xfff) + 1, partitions = (r.ebx >> 12 & 0x3ff) + 1,
                       sets = std::int64_t{r.ecx} + 1;
    result.bytes = line * partitions * result.ways * sets;
    return result;
}

bool is_amd(const cpu_reader& cpu) {
    constexpr std::uint32_t cAMD = 0x444d4163; // last letters of "AuthenticAMD"
    return cpu.cpuid(0, 0).ecx == cAMD;
}

} // namespace

cache_facts read_caches(const cpu_reader& cpu) {
    cache_facts facts{32 << 10, 8, 512 << 10, 0};
    std::int64_t last_level = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
        const cache_level cache = decode(cpu.cpuid(is_amd(cpu) ? 0x8000001dU : 4U, i));
        if (cache.level == 0) break;
        if (!cache.holds_data) continue;
        if (cache.level == 1) {
            facts.l1_bytes = cache.bytes;
            facts.l1_ways = cache.ways;
        }
        if (cache.level == 2) facts.l2_bytes = cache.bytes;
        if (cache.level == 3) last_level = cache.bytes / cache.sharing_threads;
    }
    facts.l1_bytes = std::clamp<std::int64_t>(facts.l1_bytes, 16 << 10, 256 << 10);
    facts.l1_ways = std::clamp<std::int64_t>(facts.l1_ways, 4, 16);
    facts.l2_bytes = std::clamp<std::int64_t>(facts.l2_bytes, 128 << 10, 4 << 20);
    // At most 4 MiB, because a virtual machine with a few cores may report the cache of the whole
    // socket.
    facts.last_level_bytes = std::clamp<std::int64_t>(last_level, facts.l2_bytes, 4 << 20);
    return facts;
}

const cache_facts& native_caches() {
    static const cache_facts facts = read_caches(native_cpu());
    return facts;
}

std::int64_t stream_threshold_bytes() {
    return at_first_use<[]() -> std::int64_t {
        const auto text = read_environment("MASKWISE_STREAM_BYTES");
        // Six times this core's share of the last-level cache. On two cores of Zen 5, plain stores
        // are faster up to about 20 MB moved, and streaming stores from about 28 MB.
        if (!text) return native_caches().last_level_bytes * 6;
        const auto bytes = parse_number(*text);
        if (!bytes || *bytes < 0)
            throw argument_error("MASKWISE_STREAM_BYTES=" + std::string(*text) +
                                 " is not a number of bytes");
        return *bytes;
    }>();
}

} // namespace maskwise
