// Two chunks write one variable without a lock after both have begun. They write often, because
// ThreadSanitizer misses about 1 of 200 races between single writes at the same moment.
// Exits with 0 unless ThreadSanitizer reports the race.

#include "exec/parallel.hpp"

#include <atomic>
#include <cstdio>
#include <thread>

namespace {

struct shared_numbers {
    std::atomic<int> begun{0};
    long sum = 0;
};

// Uses relaxed order, so that the counter synchronizes nothing.
void write_unlocked(const void* context, std::int64_t chunk) {
    auto& numbers = *static_cast<shared_numbers*>(const_cast<void*>(context));
    numbers.begun.fetch_add(1, std::memory_order_relaxed);
    while (numbers.begun.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
    for (int write = 0; write < 1000; ++write) {
        numbers.sum += chunk;
        numbers.begun.fetch_add(1, std::memory_order_relaxed); // prevents merging of the writes
    }
}

} // namespace

int main() {
    shared_numbers numbers;
    maskwise::parallel_run(2, write_unlocked, &numbers);
    std::printf("%ld\n", numbers.sum);
    return 0;
}
