#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

namespace maskwise {

// Held while a value is made at its first use. A fork waits for it: C++'s guard of a static
// variable would stay locked in a child that is made meanwhile.
std::unique_lock<std::recursive_mutex> lock_first_use();

// The slow way of at_first_use, out of line: inline it would cost every caller a frame.
template <auto make>
[[gnu::noinline]] auto& make_first(std::atomic<decltype(make())*>& known) {
    using value = decltype(make());
    const auto lock = lock_first_use();
    if (value* present = known.load(std::memory_order_relaxed)) return *present;
    alignas(value) static std::byte room[sizeof(value)];
    auto* const created = new (room) value(make());
    known.store(created, std::memory_order_release);
    return *created;
}

// The value of make(), called once a process, at first use; any thread. An exception passes on,
// and the next call tries again. Never destroyed: exit handlers of the client may still ask.
template <auto make>
auto& at_first_use() {
    static constinit std::atomic<decltype(make())*> known{nullptr};
    auto* const found = known.load(std::memory_order_acquire);
    return found != nullptr ? *found : make_first<make>(known);
}

} // namespace maskwise
