#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

namespace maskwise {

// Held while a value is created at its first use. A fork waits for it. C++'s guard of a static
// variable would stay locked in a child that is forked meanwhile.
std::unique_lock<std::recursive_mutex> lock_first_use();

// The same, but gives up if another thread holds the lock for a second. That thread may wait for
// the loader, whose lock the caller may hold: constructors run under it.
std::unique_lock<std::recursive_mutex> try_to_lock_first_use();

// The slow path of at_first_use. Not inlined: it would give every caller a stack frame.
template <auto make>
[[gnu::noinline]] auto& create_first(std::atomic<decltype(make())*>& instance) {
    using value = decltype(make());
    const auto lock = lock_first_use();
    if (value* existing = instance.load(std::memory_order_relaxed)) return *existing;
    alignas(value) static std::byte storage[sizeof(value)];
    auto* const created = new (storage) value(make());
    instance.store(created, std::memory_order_release);
    return *created;
}

// The value of make(), which is called once per process, at first use. Thread-safe. An exception
// passes on, and the next call tries again. Never destroyed, because the client's exit handlers may
// still use it.
template <auto make>
auto& at_first_use() {
    static constinit std::atomic<decltype(make())*> instance{nullptr};
    auto* const existing = instance.load(std::memory_order_acquire);
    return existing != nullptr ? *existing : create_first<make>(instance);
}

} // namespace maskwise
