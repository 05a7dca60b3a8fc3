#include "plan/tiling.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace maskwise {
namespace {

// Target length of an operand's contiguous pieces in a box.
constexpr std::int64_t longest_run_bytes = 256;
// Target length for dst if dst's pieces end within cache lines. Two tiles share each such line, so
// longer pieces share fewer lines. Not a power of two, because buffer rows would then collide in
// L1.
constexpr std::int64_t longest_broken_run_bytes = 1984;
// Upper bound on the bytes of dst in a box.
constexpr std::int64_t largest_box_bytes = 32 << 10;
// box::fill grows a box up to the smaller of these sizes, so that its buffers and offsets fit L1.
constexpr std::int64_t usual_box_bytes = 8192;
constexpr std::int64_t usual_box_elements = 4096;
// Operands up to cached_bytes stay in L2, and up to cached_in_l1_bytes in L1, for any box.
constexpr std::int64_t cached_bytes = 256 << 10;
constexpr std::int64_t cached_in_l1_bytes = 32 << 10;
// Upper bound on an element's offset in a box, so that its last byte's offset also fits 32 bits.
constexpr std::int64_t largest_offset = std::numeric_limits<std::int32_t>::max() - 16;

class box {
public:
    explicit box(const loop_nest& nest) : nest_(nest) { extent_.fill(1); }

    // Grows the box until the operand's contiguous pieces are `bytes` long. Stops earlier if the
    // operand has a gap of more than a cache line, or if the box is as large as allowed.
    void reach(std::size_t operand, std::int64_t bytes) {
        std::int64_t run = nest_.width_bytes[operand];
        for (const int d : by_stride(operand)) {
            const std::int64_t step = stride(d, operand);
            if (run >= bytes || step > run + line_bytes) return;
            grow(d, std::max(box_extent(d), (bytes - run + step - 1) / step + 1), largest());
            if (box_extent(d) < nest_[d].extent) return;
            run += (box_extent(d) - 1) * step;
        }
    }

    // Grows the box along dst to the usual size.
    void fill() {
        const std::int64_t usual =
            std::min(usual_box_elements, usual_box_bytes / nest_.width_bytes[op_dst]);
        for (const int d : nest_.numbers()) {
            const std::int64_t room = usual / (elements_ / box_extent(d));
            if (room < 2) return;
            grow(d, room, usual);
        }
    }

    // Cuts loops into equal chunks. If an operand is contiguous along a loop, chunks are whole
    // lines.
    tile_extents extents() const {
        tile_extents even = extent_;
        for (const int d : nest_.numbers())
            even[static_cast<std::size_t>(d)] = chunk_of(nest_[d].extent, box_extent(d), step(d));
        return even;
    }

private:
    std::int64_t box_extent(int d) const { return extent_[static_cast<std::size_t>(d)]; }
    std::int64_t largest() const { return largest_box_bytes / nest_.width_bytes[op_dst]; }

    std::int64_t step(int d) const {
        std::int64_t widest = 0;
        for (const std::size_t o : every_operand)
            if (nest_[d].stride_bytes[o] == nest_.width_bytes[o])
                widest = std::max(widest, nest_.width_bytes[o]);
        return widest == 0 ? 1 : std::min(line_bytes / widest, box_extent(d));
    }

    std::int64_t stride(int d, std::size_t operand) const {
        return std::abs(nest_[d].stride_bytes[operand]);
    }

    std::int64_t largest_stride(int d) const {
        std::int64_t largest = 0;
        for (const std::size_t o : every_operand) largest = std::max(largest, stride(d, o));
        return largest;
    }

    // Returns the loop's largest extent with offsets within 32 bits and at most `most` elements in
    // the box.
    std::int64_t room_for(int d, std::int64_t most) const {
        std::int64_t reach = largest_offset;
        for (const int other : nest_.numbers())
            if (other != d) reach -= (box_extent(other) - 1) * largest_stride(other);
        const std::int64_t stride = std::max<std::int64_t>(1, largest_stride(d));
        return std::min(most / (elements_ / box_extent(d)), reach / stride + 1);
    }

    int cut_loops() const {
        int count = 0;
        for (const int d : nest_.numbers())
            count += box_extent(d) > 1 && box_extent(d) < nest_[d].extent;
        return count;
    }

    void grow(int d, std::int64_t wanted, std::int64_t most) {
        const std::int64_t extent = nest_[d].extent, room = room_for(d, most);
        // A whole loop is better than a loop cut in two.
        std::int64_t next = extent <= 2 * wanted && extent <= room ? extent : wanted;
        next = std::min({next, extent, room});
        if (next < extent && box_extent(d) == 1 && cut_loops() == most_cut_loops) return;
        if (next <= box_extent(d)) return;
        elements_ = elements_ / box_extent(d) * next;
        extent_[static_cast<std::size_t>(d)] = next;
    }

    // Returns the loops in which the operand's stride is not 0, shortest stride first.
    std::vector<int> by_stride(std::size_t operand) const {
        std::vector<int> loops;
        for (const int d : nest_.numbers())
            if (nest_[d].stride_bytes[operand] != 0) loops.push_back(d);
        std::ranges::sort(loops, {}, [&](int d) { return stride(d, operand); });
        return loops;
    }

    const loop_nest& nest_;
    tile_extents extent_;
    std::int64_t elements_ = 1;
};

bool pieces_end_within_lines(const loop_nest& nest) {
    return std::ranges::any_of(nest, [&](const loop_dim& loop) {
        const std::int64_t stride = loop.stride_bytes[op_dst];
        return stride != nest.width_bytes[op_dst] && stride % line_bytes != 0;
    });
}

} // namespace

std::int64_t chunk_of(std::int64_t extent, std::int64_t most, std::int64_t step) {
    if (extent <= most) return extent;
    most = std::max(most / step * step, step);
    const std::int64_t count = (extent + most - 1) / most;
    const std::int64_t even = (extent + count - 1) / count;
    return std::min(extent, (even + step - 1) / step * step);
}

tile_extents choose_box(const loop_nest& nest) {
    box tile(nest);
    for (std::int64_t bytes = line_bytes; bytes <= longest_run_bytes; bytes *= 2)
        for (const std::size_t o : {op_dst, op_src_0, op_src_1, op_cond})
            if (distinct_bytes(nest, o) > cached_bytes)
                tile.reach(o, o == op_dst ? 2 * bytes : bytes); // partial lines cost twice
    if (distinct_bytes(nest, op_dst) > cached_bytes && pieces_end_within_lines(nest))
        tile.reach(op_dst, longest_broken_run_bytes);
    // If there is room, the box also gets whole lines of operands that do not fit L1.
    for (const std::size_t o : {op_src_0, op_src_1, op_cond})
        if (distinct_bytes(nest, o) > cached_in_l1_bytes) tile.reach(o, line_bytes);
    tile.fill();
    return tile.extents();
}

} // namespace maskwise
