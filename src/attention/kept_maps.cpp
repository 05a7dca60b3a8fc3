#include "attention/kept_maps.hpp"

namespace maskwise {

kept_map::kept_map(const void* of, const mask_layout& how)
    : mask(of), layout(how), tiles(static_cast<std::size_t>(how.tiles())),
      highest(how.is_bias() ? tiles.size() : 0) {}

kept_map* mask_maps_data::find(const void* mask, const mask_layout& layout) const {
    kept_map* one = first.load(std::memory_order_acquire);
    while (one != nullptr && (one->mask != mask || one->layout != layout)) one = one->next.get();
    return one;
}

kept_map* mask_maps_data::keep(std::unique_ptr<kept_map> made) {
    kept_map* const added = made.release();
    ++count;
    kept_map* before = first.load(std::memory_order_relaxed);
    do {
        static_cast<void>(added->next.release());
        added->next.reset(before);
    } while (!first.compare_exchange_weak(before, added, std::memory_order_acq_rel));
    return added;
}

inline namespace v1 {

mask_maps::mask_maps() : data_(std::make_shared<mask_maps_data>()) {}

} // namespace v1
} // namespace maskwise
