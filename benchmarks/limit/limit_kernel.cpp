// Compiled once for each vector extension by Highway, which picks the widest at run time.

#include "limit/limit_kernel.hpp"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "limit/limit_kernel.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef MASKWISE_LIMIT_SHARE
#define MASKWISE_LIMIT_SHARE
namespace maskwise::bench {

constexpr std::int64_t line_bytes = 64;

// One thread's share, in cache lines: `read` lines at each of the variant's places, evenly over
// `written` lines, in pieces of `piece` written lines.
struct share {
    const std::byte* from;
    std::byte* to;
    std::int64_t read;
    std::int64_t written;
    std::int64_t piece;
    std::int64_t ahead_bytes;
    int places;

    // Lines read before the piece that begins at the written line `at`. Cheap, since it stands in
    // the inner loop: a division would take longer than a piece.
    std::int64_t read_before(std::int64_t at) const {
        return at >= written ? read : (at * per_line) >> fraction_bits;
    }
    static constexpr int fraction_bits = 20;
    std::int64_t per_line = (read << fraction_bits) / std::max<std::int64_t>(1, written);
};

} // namespace maskwise::bench
#endif

HWY_BEFORE_NAMESPACE();
namespace maskwise::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using tag = hn::ScalableTag<std::uint64_t>;
using vector = hn::Vec<tag>;

// What is read goes into what is written, so that no read can be left out and lines stay mixed.
HWY_INLINE vector read_line(const std::byte* line, vector sum) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(line);
    for (std::size_t i = 0; i < line_bytes / 8; i += hn::Lanes(tag()))
        sum = hn::Xor(sum, hn::LoadU(tag(), words + i));
    return sum;
}

template <bool Ahead>
HWY_INLINE vector read_lines(const share& s, const std::byte* from, std::int64_t lines,
                             vector sum) {
    vector other = hn::Zero(tag()); // so that two lines can be read at once
    const std::byte* const end = from + lines * line_bytes;
    for (; from + 2 * line_bytes <= end; from += 2 * line_bytes) {
        if constexpr (Ahead) {
            hwy::Prefetch(from + s.ahead_bytes);
            hwy::Prefetch(from + s.ahead_bytes + line_bytes);
        }
        sum = read_line(from, sum);
        other = read_line(from + line_bytes, other);
    }
    if (from < end) sum = read_line(from, sum);
    return hn::Xor(sum, other);
}

template <bool Stream>
HWY_INLINE void write_lines(std::byte* to, std::int64_t lines, vector value) {
    auto* words = reinterpret_cast<std::uint64_t*>(to);
    auto* const last = words + lines * (line_bytes / 8);
    for (; words < last; words += hn::Lanes(tag()))
        Stream ? hn::Stream(value, tag(), words) : hn::Store(value, tag(), words);
}

template <bool Stream, bool Ahead>
HWY_INLINE void move_pieces(const share& s) {
    vector sum = read_line(s.from, hn::Zero(tag()));
    for (std::int64_t at = 0; at < s.written; at += s.piece) {
        const std::int64_t end = std::min(at + s.piece, s.written);
        const std::int64_t first = s.read_before(at), last = s.read_before(end);
        for (int place = 0; place < s.places; ++place)
            sum = read_lines<Ahead>(s, s.from + (place * s.read + first) * line_bytes, last - first,
                                    sum);
        write_lines<Stream>(s.to + at * line_bytes, end - at, sum);
    }
    if constexpr (Stream) hwy::FlushStream();
}

void move(const share& s, bool stream) {
    if (s.ahead_bytes > 0)
        stream ? move_pieces<true, true>(s) : move_pieces<false, true>(s);
    else
        stream ? move_pieces<true, false>(s) : move_pieces<false, false>(s);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

namespace maskwise::bench {
namespace {

HWY_EXPORT(move);

constexpr int parts_per_thread = 4;

// The lines that the places do not share out evenly are read by nobody: fewer than there are
// places.
void run_part(const limit_pass& pass, const limit_variant& variant, std::int64_t part,
              std::int64_t parts) {
    const std::int64_t read = pass.read_bytes / line_bytes;
    const std::int64_t written = pass.written_bytes / line_bytes;
    const std::int64_t read_begin = read * part / parts, read_end = read * (part + 1) / parts;
    const std::int64_t begin = written * part / parts, end = written * (part + 1) / parts;
    const share s{pass.from + read_begin * line_bytes,
                  pass.to + begin * line_bytes,
                  (read_end - read_begin) / variant.places,
                  end - begin,
                  variant.piece_bytes / line_bytes,
                  variant.ahead_bytes,
                  variant.places};
    HWY_DYNAMIC_DISPATCH(move)(s, variant.stream);
}

// Those that were the best of many for some mix of reads and writes, in some cache. More threads
// are not always faster: their reads and writes meet in the memory's banks.
constexpr std::array variants{
#define MASKWISE_LIMIT_WAYS(stream, threads)                                                       \
    limit_variant{stream, threads, 1024, 0, 1}, limit_variant{stream, threads, 4096, 0, 1},        \
        limit_variant{stream, threads, 256, 0, 2}, limit_variant{stream, threads, 512, 0, 3}
#define MASKWISE_LIMIT_WAYS_OF_ALL_THREADS(stream)                                                 \
    MASKWISE_LIMIT_WAYS(stream, true), limit_variant{stream, true, 256, 0, 1},                     \
        limit_variant{stream, true, 16384, 0, 1}, limit_variant{stream, true, 512, 0, 2},          \
        limit_variant{stream, true, 4096, 0, 2}, limit_variant{stream, true, 1024, 1024, 1},       \
        limit_variant {                                                                            \
        stream, true, 1024, 2048, 2                                                                \
    }
    MASKWISE_LIMIT_WAYS(false, false),
    MASKWISE_LIMIT_WAYS(true, false),
    MASKWISE_LIMIT_WAYS_OF_ALL_THREADS(false),
    MASKWISE_LIMIT_WAYS_OF_ALL_THREADS(true),
#undef MASKWISE_LIMIT_WAYS
#undef MASKWISE_LIMIT_WAYS_OF_ALL_THREADS
};

} // namespace

std::span<const limit_variant> limit_variants() {
    return variants;
}

std::string to_string(const limit_variant& variant) {
    std::string text = std::string(variant.stream ? "streamed" : "plain") + " stores, " +
                       (variant.all_threads ? "all threads" : "one thread") + ", pieces of " +
                       std::to_string(variant.piece_bytes);
    if (variant.ahead_bytes > 0) text += ", prefetch " + std::to_string(variant.ahead_bytes);
    if (variant.places > 1) text += ", read at " + std::to_string(variant.places) + " places";
    return text;
}

void run_limit(const limit_pass& pass, const limit_variant& variant, int threads) {
    if (!variant.all_threads || threads == 1) return run_part(pass, variant, 0, 1);
    const int parts = threads * parts_per_thread;
    tbb::parallel_for(
        0, parts, [&](int part) { run_part(pass, variant, part, parts); },
        tbb::simple_partitioner());
}

} // namespace maskwise::bench
#endif
