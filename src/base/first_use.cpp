#include "base/first_use.hpp"

#include <memory>
#include <pthread.h>

namespace maskwise {
namespace {

std::recursive_mutex mutex; // recursive: making one value may use another for the first time

// A recursive mutex knows its owner by a number that the thread does not keep in the child.
[[maybe_unused]] const int watching_forks =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { std::construct_at(&mutex); });

} // namespace

std::unique_lock<std::recursive_mutex> lock_first_use() {
    return std::unique_lock(mutex);
}

} // namespace maskwise
