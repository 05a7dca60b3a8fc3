#include "onednn/record/record_pool.hpp"

#include <array>

namespace maskwise::onednn {
namespace {

constexpr std::size_t most_kept = 64;

struct kept_blocks {
    std::array<void*, most_kept> blocks;
    std::size_t count = 0;

    ~kept_blocks() {
        while (count > 0) ::operator delete(blocks[--count]);
        count = most_kept; // a record freed later by this thread goes straight back
    }
};

thread_local kept_blocks kept;

} // namespace

void* take_record_block(std::size_t bytes) {
    if (bytes > record_block_bytes) return ::operator new(bytes);
    if (kept.count > 0 && kept.count < most_kept) return kept.blocks[--kept.count];
    return ::operator new(record_block_bytes);
}

void give_record_block(void* block, std::size_t bytes) noexcept {
    if (bytes <= record_block_bytes && kept.count + 1 < most_kept)
        kept.blocks[kept.count++] = block;
    else
        ::operator delete(block);
}

} // namespace maskwise::onednn
