#include "limit.hpp"

#include <immintrin.h>
#include <tbb/parallel_for.h>

#include <algorithm>

namespace maskwise::bench {
namespace {

// Written bytes between two changes from reading to writing.
constexpr std::int64_t piece_bytes = 512;

__attribute__((target("avx2"))) __m256i read_piece(const std::byte* from, std::int64_t bytes,
                                                   __m256i sum) {
    std::int64_t at = 0;
    for (; at + 128 <= bytes; at += 128) {
        const auto* lines = reinterpret_cast<const __m256i*>(from + at);
        sum = _mm256_or_si256(sum, _mm256_or_si256(_mm256_or_si256(_mm256_loadu_si256(lines),
                                                                   _mm256_loadu_si256(lines + 1)),
                                                   _mm256_or_si256(_mm256_loadu_si256(lines + 2),
                                                                   _mm256_loadu_si256(lines + 3))));
    }
    for (; at + 32 <= bytes; at += 32)
        sum = _mm256_or_si256(sum, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
    return sum;
}

__attribute__((target("avx2"))) void write_piece(std::byte* to, std::int64_t bytes, __m256i value,
                                                 bool stream) {
    auto* lanes = reinterpret_cast<__m256i*>(to);
    if (stream)
        for (std::int64_t i = 0; i < bytes / 32; ++i) _mm256_stream_si256(lanes + i, value);
    else
        for (std::int64_t i = 0; i < bytes / 32; ++i) _mm256_store_si256(lanes + i, value);
}

__attribute__((target("avx2"))) void run_pieces(const limit_pass& pass, bool stream,
                                                std::int64_t first, std::int64_t last) {
    const std::int64_t pieces = std::max<std::int64_t>(1, pass.written_bytes / piece_bytes);
    const double each = static_cast<double>(pass.read_bytes) / static_cast<double>(pieces);
    __m256i sum = _mm256_setzero_si256();
    for (std::int64_t piece = first; piece < last; ++piece) {
        const auto begin = static_cast<std::int64_t>(each * static_cast<double>(piece)) & ~31;
        const auto end = static_cast<std::int64_t>(each * static_cast<double>(piece + 1)) & ~31;
        sum = read_piece(pass.from + begin, end - begin, sum);
        write_piece(pass.to + piece * piece_bytes, piece_bytes, sum, stream);
    }
    if (stream) _mm_sfence();
}

} // namespace

void run_limit(const limit_pass& pass, bool stream, int threads) {
    const std::int64_t pieces = pass.written_bytes / piece_bytes;
    if (threads == 1) return run_pieces(pass, stream, 0, pieces);
    const std::int64_t parts = threads * 4;
    tbb::parallel_for(std::int64_t{0}, parts, [&](std::int64_t part) {
        run_pieces(pass, stream, pieces * part / parts, pieces * (part + 1) / parts);
    });
}

} // namespace maskwise::bench
