#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

namespace maskwise {

// Locks the mutex that is held while a value is created at its first use. A fork waits for the
// mutex. A C++ static variable would not do: if another thread forks during the creation, the
// variable's guard stays locked in the child.
std::unique_lock<std::recursive_mutex> lock_first_use();

// Tries for about a second to lock the mutex of lock_first_use(). Returns an unlocked lock on
// failure. For callers in library constructors: they hold the loader's lock, for which the mutex's
// owner may wait.
std::unique_lock<std::recursive_mutex> try_to_lock_first_use();

// The slow path of at_first_use. Not inlined, because inlining would give every caller a stack
// frame.
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

// Returns the value of make(), which is called once per process, at first use. If make() throws,
// the next call tries again. The value is never destroyed, because the client's exit handlers may
// use it. Thread-safe.
template <auto make>
auto& at_first_use() {
    static constinit std::atomic<decltype(make())*> instance{nullptr};
    auto* const existing = instance.load(std::memory_order_acquire);
    return existing != nullptr ? *existing : create_first<make>(instance);
}

} // namespace maskwise
