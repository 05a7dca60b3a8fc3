// A library with a planted fault. A sanitizer that misses this fault would also miss faults of
// integrations/.
#include <memory>
#include <thread>

extern "C" [[gnu::visibility("default")]] int plant(int size) {
    const auto values = std::make_unique<int[]>(static_cast<std::size_t>(size));
#ifdef __SANITIZE_THREAD__
    std::thread other([&] { ++values[0]; });
    ++values[0];
    other.join();
    return values[0];
#else
    return values[static_cast<std::size_t>(size)];
#endif
}
