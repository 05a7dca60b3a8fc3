#include "attention/cached_maps.hpp"

namespace maskwise {

cached_map::cached_map(const void* address, const mask_layout& form)
    : mask(address), layout(form), tiles(static_cast<std::size_t>(form.tiles())),
      highest(form.is_bias() ? tiles.size() : 0) {}

cached_map* cached_maps::find(const void* mask, const mask_layout& layout) const {
    cached_map* map = first.load(std::memory_order_acquire);
    while (map != nullptr && (map->mask != mask || map->layout != layout)) map = map->next.get();
    return map;
}

cached_map* cached_maps::add(std::unique_ptr<cached_map> map) {
    cached_map* const added = map.release();
    ++count;
    cached_map* head = first.load(std::memory_order_relaxed);
    do {
        static_cast<void>(added->next.release());
        added->next.reset(head);
    } while (!first.compare_exchange_weak(head, added, std::memory_order_acq_rel));
    return added;
}

inline namespace v1 {

mask_maps::mask_maps() : data_(std::make_shared<cached_maps>()) {}

} // namespace v1
} // namespace maskwise
