#include "limit/limit_kernel.hpp"

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace maskwise::bench {
namespace {

constexpr std::int64_t line_bytes = 64;
constexpr int parts_per_thread = 4;

// One thread's share, in cache lines: `read` lines are spread evenly over `written` lines, in
// pieces of `piece` written lines.
struct share {
    const std::byte* from;
    std::byte* to;
    std::int64_t read;
    std::int64_t written;
    std::int64_t piece;
    std::int64_t ahead_bytes;
    bool stream;

    // Lines read before the piece that begins at the written line `at`. Cheap, since it stands in
    // the inner loop: a division would take longer than a piece.
    std::int64_t read_before(std::int64_t at) const {
        return at >= written ? read : (at * per_line) >> fraction_bits;
    }
    static constexpr int fraction_bits = 20;
    std::int64_t per_line = 0;
};

#if defined(__x86_64__)

// The sum goes into what is written, so that no read can be left out.
__attribute__((target("avx512f"))) inline __m512i
read_avx512(const std::byte* from, std::int64_t lines, std::int64_t ahead_bytes) {
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    std::int64_t i = 0;
    for (; i + 4 <= lines; i += 4, from += 4 * line_bytes) {
        if (ahead_bytes > 0)
            for (std::int64_t at = 0; at < 4 * line_bytes; at += line_bytes)
                _mm_prefetch(reinterpret_cast<const char*>(from + ahead_bytes + at), _MM_HINT_T0);
        a = _mm512_or_si512(a, _mm512_loadu_si512(from));
        b = _mm512_or_si512(b, _mm512_loadu_si512(from + 64));
        c = _mm512_or_si512(c, _mm512_loadu_si512(from + 128));
        d = _mm512_or_si512(d, _mm512_loadu_si512(from + 192));
    }
    for (; i < lines; ++i, from += line_bytes) a = _mm512_or_si512(a, _mm512_loadu_si512(from));
    return _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
}

__attribute__((target("avx512f"))) void move_avx512(const share& s) {
    for (std::int64_t at = 0; at < s.written; at += s.piece) {
        const std::int64_t end = std::min(at + s.piece, s.written), read = s.read_before(at);
        const __m512i sum =
            read_avx512(s.from + read * line_bytes, s.read_before(end) - read, s.ahead_bytes);
        auto* to = reinterpret_cast<__m512i*>(s.to + at * line_bytes);
        auto* const last = reinterpret_cast<__m512i*>(s.to + end * line_bytes);
        if (s.stream)
            for (; to != last; ++to) _mm512_stream_si512(to, sum);
        else
            for (; to != last; ++to) _mm512_store_si512(to, sum);
    }
}

__attribute__((target("avx2"))) inline __m256i read_avx2(const std::byte* from, std::int64_t lines,
                                                         std::int64_t ahead_bytes) {
    __m256i a = _mm256_setzero_si256(), b = a;
    for (std::int64_t i = 0; i < lines; ++i, from += line_bytes) {
        if (ahead_bytes > 0)
            _mm_prefetch(reinterpret_cast<const char*>(from + ahead_bytes), _MM_HINT_T0);
        const auto* halves = reinterpret_cast<const __m256i*>(from);
        a = _mm256_or_si256(a, _mm256_loadu_si256(halves));
        b = _mm256_or_si256(b, _mm256_loadu_si256(halves + 1));
    }
    return _mm256_or_si256(a, b);
}

__attribute__((target("avx2"))) void move_avx2(const share& s) {
    for (std::int64_t at = 0; at < s.written; at += s.piece) {
        const std::int64_t end = std::min(at + s.piece, s.written), read = s.read_before(at);
        const __m256i sum =
            read_avx2(s.from + read * line_bytes, s.read_before(end) - read, s.ahead_bytes);
        auto* to = reinterpret_cast<__m256i*>(s.to + at * line_bytes);
        auto* const last = reinterpret_cast<__m256i*>(s.to + end * line_bytes);
        if (s.stream)
            for (; to != last; ++to) _mm256_stream_si256(to, sum);
        else
            for (; to != last; ++to) _mm256_store_si256(to, sum);
    }
}

void finish(bool stream) {
    if (stream) _mm_sfence();
}

using move_fn = void (*)(const share&);

move_fn choose_move() {
    return __builtin_cpu_supports("avx512f") ? move_avx512 : move_avx2;
}

#else

// No streaming stores that C++ can ask for: both store kinds are plain, the compiler vectorises.
void move_plain(const share& s) {
    std::uint64_t sum[8] = {};
    for (std::int64_t at = 0; at < s.written; at += s.piece) {
        const std::int64_t end = std::min(at + s.piece, s.written);
        for (std::int64_t i = s.read_before(at); i < s.read_before(end); ++i) {
            std::uint64_t line[8];
            std::memcpy(line, s.from + i * line_bytes, sizeof line);
            for (int k = 0; k < 8; ++k) sum[k] |= line[k];
        }
        for (std::int64_t i = at; i < end; ++i) std::memcpy(s.to + i * line_bytes, sum, sizeof sum);
    }
}

void finish(bool) {}

using move_fn = void (*)(const share&);

move_fn choose_move() {
    return move_plain;
}

#endif

void run_part(const limit_pass& pass, const limit_variant& variant, std::int64_t part,
              std::int64_t parts) {
    static const move_fn move = choose_move();
    const std::int64_t read = pass.read_bytes / line_bytes;
    const std::int64_t written = pass.written_bytes / line_bytes;
    const std::int64_t read_begin = read * part / parts, read_end = read * (part + 1) / parts;
    const std::int64_t begin = written * part / parts, end = written * (part + 1) / parts;
    share s{pass.from + read_begin * line_bytes,
            pass.to + begin * line_bytes,
            read_end - read_begin,
            end - begin,
            variant.piece_bytes / line_bytes,
            variant.ahead_bytes,
            variant.stream};
    s.per_line = (s.read << share::fraction_bits) / std::max<std::int64_t>(1, s.written);
    move(s);
    finish(variant.stream);
}

constexpr std::array variants{
#define MASKWISE_LIMIT_PIECES(stream, threads)                                                     \
    limit_variant{stream, threads, 256, 0}, limit_variant{stream, threads, 1024, 0},               \
        limit_variant{stream, threads, 4096, 0}, limit_variant{stream, threads, 16384, 0},         \
        limit_variant{stream, threads, 1024, 1024}, limit_variant{stream, threads, 4096, 2048}
    MASKWISE_LIMIT_PIECES(false, false),
    MASKWISE_LIMIT_PIECES(true, false),
    MASKWISE_LIMIT_PIECES(false, true),
    MASKWISE_LIMIT_PIECES(true, true),
#undef MASKWISE_LIMIT_PIECES
};

} // namespace

std::span<const limit_variant> limit_variants() {
    return variants;
}

std::string to_string(const limit_variant& variant) {
    return std::string(variant.stream ? "streamed" : "plain") + " stores, " +
           (variant.all_threads ? "all threads" : "one thread") + ", pieces of " +
           std::to_string(variant.piece_bytes) +
           (variant.ahead_bytes > 0 ? ", prefetch " + std::to_string(variant.ahead_bytes) : "");
}

void run_limit(const limit_pass& pass, const limit_variant& variant, int threads) {
    if (!variant.all_threads || threads == 1) return run_part(pass, variant, 0, 1);
    const int parts = threads * parts_per_thread;
    tbb::parallel_for(
        0, parts, [&](int part) { run_part(pass, variant, part, parts); },
        tbb::simple_partitioner());
}

} // namespace maskwise::bench
