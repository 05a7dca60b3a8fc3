#include "plan/windows.hpp"

#include "kernel/select/contract.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace maskwise {
namespace {

constexpr std::int64_t register_bytes = window_bytes;
constexpr std::uint8_t nothing = 0x80; // a shuffle index that picks no byte
// A gap of at most this many bytes cannot contain a whole memory page.
constexpr std::int64_t longest_gap_bytes = 2048;

using byte_places = std::array<std::int32_t, register_bytes>;

// Returns the offset in the operand of each byte of a register that starts at packed byte `first`.
byte_places places_of(std::span<const std::int32_t> offsets, std::int64_t item_bytes,
                      std::int64_t first) {
    byte_places places;
    for (std::int64_t b = 0; b < register_bytes; ++b) {
        const auto [item, byte] = std::div(first + b, item_bytes);
        places[static_cast<std::size_t>(b)] =
            offsets[static_cast<std::size_t>(item)] + static_cast<std::int32_t>(byte);
    }
    return places;
}

// Returns the offsets of the fewest windows that cover `places`.
std::vector<std::int32_t> cover_places(byte_places places) {
    std::sort(places.begin(), places.end());
    std::vector<std::int32_t> windows;
    for (const std::int32_t place : places)
        if (windows.empty() || place - windows.back() >= register_bytes) windows.push_back(place);
    return windows;
}

// Returns how many moves of power-of-two width copy one item. choose_windows counts a window as two
// moves.
std::int64_t moves_of(std::int64_t item_bytes) {
    return std::has_single_bit(static_cast<std::uint64_t>(item_bytes)) ? 1 : 2;
}

void add_shuffle(byte_windows& result, const byte_places& places, std::int32_t window) {
    result.offsets.push_back(window);
    for (const std::int32_t place : places) {
        const bool inside = place >= window && place < window + register_bytes;
        result.shuffles.push_back(inside ? static_cast<std::uint8_t>(place - window) : nothing);
    }
}

} // namespace

byte_windows choose_windows(std::span<const std::int32_t> offsets, std::int64_t item_bytes) {
    const auto items = static_cast<std::int64_t>(offsets.size());
    const std::int64_t bytes = items * item_bytes;
    if (bytes < register_bytes) return {};
    const std::int64_t registers = (bytes + register_bytes - 1) / register_bytes;
    const std::int64_t moves = items * moves_of(item_bytes);
    std::vector<byte_places> places;
    byte_windows result;
    for (std::int64_t r = 0; r < registers; ++r) {
        const std::int64_t first = std::min(r * register_bytes, bytes - register_bytes);
        places.push_back(places_of(offsets, item_bytes, first));
        const auto windows = static_cast<std::int64_t>(cover_places(places.back()).size());
        result.count = std::max(result.count, windows);
        // A register has at most 16 moves (items of one byte), so count stays within max_windows.
        if (2 * registers * result.count > moves) return {};
    }
    for (const byte_places& each : places) {
        std::vector<std::int32_t> windows = cover_places(each);
        for (const std::int32_t window : windows) add_shuffle(result, each, window);
        for (auto w = static_cast<std::int64_t>(windows.size()); w < result.count; ++w) {
            result.offsets.push_back(windows.back());
            result.shuffles.insert(result.shuffles.end(), register_bytes, nothing);
        }
    }
    return result;
}

std::int64_t windows_end(const loop_nest& nest, std::size_t operand) {
    std::vector<std::pair<std::int64_t, std::int64_t>> loops; // stride, bytes to the last element
    std::int64_t end = nest.width_bytes[operand];
    for (const auto& loop : nest) {
        const std::int64_t stride = loop.stride_bytes[operand];
        const std::int64_t last = (loop.extent - 1) * stride;
        loops.emplace_back(std::abs(stride), std::abs(last));
        end += std::max<std::int64_t>(0, last);
    }
    std::sort(loops.begin(), loops.end());
    std::int64_t connected = nest.width_bytes[operand];
    for (const auto& [stride, last] : loops) {
        if (stride > connected + longest_gap_bytes) return 0;
        connected += last;
    }
    return end;
}

} // namespace maskwise
