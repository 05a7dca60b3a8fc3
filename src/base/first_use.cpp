#include "base/first_use.hpp"

#include <memory>
#include <pthread.h>
#include <unistd.h>

namespace maskwise {
namespace {

std::recursive_mutex mutex; // recursive: creating one value may create another

// A recursive mutex stores its owner's thread id. In the child of a fork, the thread has another
// id. So the child constructs a new mutex instead of unlocking the inherited mutex.
[[maybe_unused]] const int watching_forks =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { std::construct_at(&mutex); });

} // namespace

std::unique_lock<std::recursive_mutex> lock_first_use() {
    return std::unique_lock(mutex);
}

std::unique_lock<std::recursive_mutex> try_to_lock_first_use() {
    std::unique_lock lock(mutex, std::try_to_lock);
    for (int waited_ms = 0; !lock && waited_ms < 1000; ++waited_ms) {
        usleep(1000);
        [[maybe_unused]] const bool is_locked = lock.try_lock();
    }
    return lock;
}

} // namespace maskwise
