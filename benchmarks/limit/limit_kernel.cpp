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

// What is read, then written, before the next piece.
struct piece {
    const std::byte* from;
    std::int64_t read;
    std::byte* to;
    std::int64_t written;
    std::int64_t ahead;
};

#if defined(__x86_64__)

__attribute__((target("avx512f"))) inline __m512i line(const std::byte* from) {
    return _mm512_loadu_si512(from);
}

__attribute__((target("avx512f"))) void move_avx512(const piece& p, bool stream) {
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    std::int64_t at = 0;
    for (; at + 4 * line_bytes <= p.read; at += 4 * line_bytes) {
        if (p.ahead > 0)
            for (std::int64_t i = 0; i < 4; ++i)
                _mm_prefetch(reinterpret_cast<const char*>(p.from + at + p.ahead + i * line_bytes),
                             _MM_HINT_T0);
        a = _mm512_or_si512(a, line(p.from + at));
        b = _mm512_or_si512(b, line(p.from + at + 64));
        c = _mm512_or_si512(c, line(p.from + at + 128));
        d = _mm512_or_si512(d, line(p.from + at + 192));
    }
    for (; at < p.read; at += line_bytes) a = _mm512_or_si512(a, line(p.from + at));
    a = _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
    if (p.written == 0) __asm__ volatile("" : : "v"(a));
    for (at = 0; at < p.written; at += line_bytes) {
        auto* to = reinterpret_cast<__m512i*>(p.to + at);
        if (stream)
            _mm512_stream_si512(to, a);
        else
            _mm512_store_si512(to, a);
    }
}

__attribute__((target("avx2"))) inline __m256i half(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

__attribute__((target("avx2"))) void move_avx2(const piece& p, bool stream) {
    __m256i a = _mm256_setzero_si256(), b = a;
    for (std::int64_t at = 0; at < p.read; at += line_bytes) {
        if (p.ahead > 0)
            _mm_prefetch(reinterpret_cast<const char*>(p.from + at + p.ahead), _MM_HINT_T0);
        a = _mm256_or_si256(a, half(p.from + at));
        b = _mm256_or_si256(b, half(p.from + at + 32));
    }
    a = _mm256_or_si256(a, b);
    if (p.written == 0) __asm__ volatile("" : : "x"(a));
    for (std::int64_t at = 0; at < p.written; at += 32) {
        auto* to = reinterpret_cast<__m256i*>(p.to + at);
        if (stream)
            _mm256_stream_si256(to, a);
        else
            _mm256_store_si256(to, a);
    }
}

void finish(bool stream) {
    if (stream) _mm_sfence();
}

using move_fn = void (*)(const piece&, bool);

move_fn choose_move() {
    if (__builtin_cpu_supports("avx512f")) return move_avx512;
    return move_avx2;
}

#else

// No streaming stores that C++ can ask for: both store kinds are plain, the compiler vectorises.
void move_plain(const piece& p, bool) {
    std::uint64_t sum = 0;
    for (std::int64_t at = 0; at < p.read; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, p.from + at, 8);
        sum |= word;
    }
    for (std::int64_t at = 0; at < p.written; at += 8) std::memcpy(p.to + at, &sum, 8);
    __asm__ volatile("" : : "r"(sum) : "memory");
}

void finish(bool) {}

using move_fn = void (*)(const piece&, bool);

move_fn choose_move() {
    return move_plain;
}

#endif

// Lines [first, last) of whichever side has more, and the share of the other that goes with them.
void run_part(const limit_pass& pass, const limit_variant& variant, std::int64_t part,
              std::int64_t parts) {
    static const move_fn move = choose_move();
    const std::int64_t read_lines = pass.read_bytes / line_bytes;
    const std::int64_t write_lines = pass.written_bytes / line_bytes;
    const std::int64_t pieces =
        std::max({std::int64_t{1}, pass.written_bytes / variant.piece_bytes,
                  write_lines == 0 ? pass.read_bytes / variant.piece_bytes : 0});
    const auto edge = [pieces](std::int64_t lines, std::int64_t i) {
        return static_cast<std::int64_t>(static_cast<double>(lines) * static_cast<double>(i) /
                                         static_cast<double>(pieces)) *
               line_bytes;
    };
    for (std::int64_t i = pieces * part / parts; i < pieces * (part + 1) / parts; ++i) {
        const std::int64_t read = edge(read_lines, i), written = edge(write_lines, i);
        move({pass.from + read, edge(read_lines, i + 1) - read, pass.to + written,
              edge(write_lines, i + 1) - written, variant.ahead_bytes},
             variant.stream);
    }
    finish(variant.stream);
}

constexpr std::array variants{
#define MASKWISE_LIMIT_PIECES(stream, threads)                                                     \
    limit_variant{stream, threads, 64, 0}, limit_variant{stream, threads, 512, 0},                 \
        limit_variant{stream, threads, 4096, 0}, limit_variant{stream, threads, 16384, 0},         \
        limit_variant{stream, threads, 512, 1024}, limit_variant{stream, threads, 4096, 2048}
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
