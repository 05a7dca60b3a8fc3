// Highway compiles this file once for each instruction set and picks the best set at run time.

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

// The cache lines of one call of move(). Reads `read` lines of each of `places` slices, which are
// `place_bytes` apart. Writes `written` lines, in pieces of `piece` lines. The reads are
// distributed evenly over the pieces.
struct share {
    const std::byte* from;
    std::byte* to;
    std::int64_t place_bytes;
    std::int64_t read;
    std::int64_t written;
    std::int64_t piece;
    std::int64_t ahead_bytes;
    int places;

    // Lines read of each slice before the piece that begins at written line `line`. Multiplies and
    // shifts, because a division would take longer than moving a short piece.
    std::int64_t read_before(std::int64_t line) const {
        return line >= written ? read : (line * per_line) >> fraction_bits;
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

// Written values depend on the lines read, so the compiler removes no read.
HWY_INLINE vector read_line(const std::byte* line, vector sum) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(line);
    for (std::size_t i = 0; i < line_bytes / 8; i += hn::Lanes(tag()))
        sum = hn::Xor(sum, hn::LoadU(tag(), words + i));
    return sum;
}

template <bool Ahead>
HWY_INLINE vector read_lines(const share& s, const std::byte* from, std::int64_t lines,
                             vector sum) {
    vector other = hn::Zero(tag()); // a second dependency chain: two lines are read at once
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

// `sum` does not begin with zero: if nothing is read, every written line is `sum`, and some CPUs
// write zeros faster.
template <bool Stream, bool Ahead>
HWY_INLINE void move_pieces(const share& s) {
    vector sum = hn::Set(tag(), 0x3f8000013f800001);
    for (std::int64_t line = 0; line < s.written; line += s.piece) {
        const std::int64_t end = std::min(line + s.piece, s.written);
        const std::int64_t first = s.read_before(line), last = s.read_before(end);
        for (int place = 0; place < s.places; ++place)
            sum = read_lines<Ahead>(s, s.from + place * s.place_bytes + first * line_bytes,
                                    last - first, sum);
        write_lines<Stream>(s.to + line * line_bytes, end - line, sum);
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

#include <atomic>

namespace maskwise::bench {
namespace {

HWY_EXPORT(move);

constexpr int parts_per_thread = 4;
constexpr std::int64_t block_bytes = 64 << 10;

void run_part(const limit_pass& pass, const limit_variant& variant, std::int64_t part,
              std::int64_t parts) {
    const std::int64_t read = pass.read_bytes / line_bytes / variant.places; // of each slice
    const std::int64_t written = pass.written_bytes / line_bytes;
    const std::int64_t read_begin = read * part / parts, read_end = read * (part + 1) / parts;
    const std::int64_t begin = written * part / parts, end = written * (part + 1) / parts;
    const share s{pass.from + read_begin * line_bytes,
                  pass.to + begin * line_bytes,
                  read * line_bytes,
                  read_end - read_begin,
                  end - begin,
                  variant.piece_bytes / line_bytes,
                  variant.ahead_bytes,
                  variant.places};
    HWY_DYNAMIC_DISPATCH(move)(s, variant.stream);
}

// A part that writes no line would read nothing, so the written lines bound the number of parts.
template <typename Partitioner>
void run_parts(const limit_pass& pass, const limit_variant& variant, std::int64_t most,
               const Partitioner& partitioner) {
    const std::int64_t lines = std::max<std::int64_t>(1, pass.written_bytes / line_bytes);
    const std::int64_t parts = std::min(most, lines);
    tbb::parallel_for(
        std::int64_t{0}, parts, [&](std::int64_t part) { run_part(pass, variant, part, parts); },
        partitioner);
}

void run_blocks(const limit_pass& pass, const limit_variant& variant, int threads) {
    const std::int64_t blocks = std::max<std::int64_t>(1, pass.written_bytes / block_bytes);
    std::atomic<std::int64_t> next{0};
    tbb::parallel_for(
        0, threads,
        [&](int) {
            for (std::int64_t block = next++; block < blocks; block = next++)
                run_part(pass, variant, block, blocks);
        },
        tbb::simple_partitioner());
}

// Each of these variants was the best for some mix of reads and writes in some cache, with ordinary
// or with streaming stores. More threads are not always faster, because their reads and writes
// compete for the memory's banks.
using enum limit_sharing;
constexpr std::array forms{
    limit_variant{one_thread, false, 1024, 0, 1},
    limit_variant{one_thread, false, 4096, 0, 1},
    limit_variant{one_thread, false, 65536, 0, 1},
    limit_variant{one_thread, false, 256, 0, 2},
    limit_variant{one_thread, false, 512, 0, 3},
    limit_variant{one_thread, false, 1024, 1024, 1},
    limit_variant{one_thread, false, 1024, 1024, 3}, // the last of forms_of_one_thread
    limit_variant{parts, false, 256, 0, 1},
    limit_variant{parts, false, 1024, 0, 1},
    limit_variant{parts, false, 4096, 0, 1},
    limit_variant{parts, false, 16384, 0, 1},
    limit_variant{parts, false, 65536, 0, 1},
    limit_variant{parts, false, 256, 0, 2},
    limit_variant{parts, false, 512, 0, 2},
    limit_variant{parts, false, 4096, 0, 2},
    limit_variant{parts, false, 512, 0, 3},
    limit_variant{parts, false, 1024, 1024, 1},
    limit_variant{parts, false, 1024, 2048, 2},
    limit_variant{parts, false, 1024, 1024, 3},
    limit_variant{parts, false, 2048, 2048, 3},
    limit_variant{parts, false, 4096, 1024, 3},
    limit_variant{blocks, false, 1024, 0, 1},
    limit_variant{blocks, false, 1024, 1024, 3},
    limit_variant{own_lines, false, 1024, 0, 1},
    limit_variant{own_lines, false, 512, 0, 3},
    limit_variant{own_lines, false, 1024, 1024, 3},
};
constexpr std::size_t forms_of_one_thread = 7;

constexpr auto variants = [] {
    std::array<limit_variant, 2 * forms.size()> both{};
    for (std::size_t i = 0; i < forms.size(); ++i) {
        both[2 * i] = both[2 * i + 1] = forms[i];
        both[2 * i + 1].stream = true;
    }
    return both;
}();

const char* name_of(limit_sharing sharing) {
    switch (sharing) {
    case one_thread:
        return "one thread";
    case parts:
        return "all threads";
    case blocks:
        return "all threads in blocks of 65536 bytes";
    case own_lines:
        return "all threads, each on lines of its own";
    }
    return "?";
}

} // namespace

std::span<const limit_variant> limit_variants(int threads) {
    return std::span(variants).first(threads > 1 ? variants.size() : 2 * forms_of_one_thread);
}

std::string to_string(const limit_variant& variant) {
    std::string text = std::string(variant.stream ? "streamed" : "plain") + " stores, " +
                       name_of(variant.sharing) + ", pieces of " +
                       std::to_string(variant.piece_bytes) + " bytes";
    if (variant.ahead_bytes > 0)
        text += ", prefetch " + std::to_string(variant.ahead_bytes) + " bytes ahead";
    if (variant.places > 1) text += ", read at " + std::to_string(variant.places) + " places";
    return text;
}

void run_limit(const limit_pass& pass, const limit_variant& variant, int threads) {
    switch (variant.sharing) {
    case one_thread:
        return run_part(pass, variant, 0, 1);
    case parts:
        return run_parts(pass, variant, threads * parts_per_thread, tbb::simple_partitioner());
    case blocks:
        return run_blocks(pass, variant, threads);
    case own_lines:
        // The static partitioner sends a part to the same thread each time.
        return run_parts(pass, variant, threads, tbb::static_partitioner());
    }
}

} // namespace maskwise::bench
#endif
