#include "fusion/compiled_block.hpp"

#include <algorithm>

namespace maskwise::fusion {

std::unique_ptr<attention_scratch> scratch_pool::take() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) return nullptr;
    auto last = std::move(kept_.back());
    kept_.pop_back();
    return last;
}

void append(operand_shapes& to, const tensor_desc& desc) {
    to.push_back(desc.extents.rank());
    to.insert(to.end(), desc.extents.begin(), desc.extents.end());
    to.insert(to.end(), desc.strides_bytes.begin(), desc.strides_bytes.end());
}

recent_blocks::pointer recent_blocks::find_known(const operand_shapes& of) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(kept_, of, &std::pair<operand_shapes, pointer>::first);
    return known == kept_.end() ? nullptr : known->second;
}

void recent_blocks::keep(const operand_shapes& of, const pointer& made) {
    constexpr std::size_t most = 4;
    const std::lock_guard lock(mutex_);
    if (kept_.size() == most) kept_.pop_back();
    kept_.emplace_front(of, made);
}

} // namespace maskwise::fusion
