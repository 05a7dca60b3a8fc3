#include "base/first_use.hpp"

#include <memory>
#include <pthread.h>

namespace maskwise {
namespace {

std::recursive_mutex mutex; // recursive: creating one value may create another

// A recursive mutex stores its owner's thread id, which differs in the child.
[[maybe_unused]] const int watching_forks =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { std::construct_at(&mutex); });

} // namespace

std::unique_lock<std::recursive_mutex> lock_first_use() {
    return std::unique_lock(mutex);
}

} // namespace maskwise
