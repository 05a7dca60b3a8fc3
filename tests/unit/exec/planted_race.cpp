// Writes one variable from every chunk without a lock. Ends with 0 unless ThreadSanitizer objects.

#include "exec/parallel.hpp"

#include <cstdio>

int main() {
    long sum = 0;
    maskwise::parallel_run(
        100000,
        [](const void* context, std::int64_t chunk) {
            *static_cast<long*>(const_cast<void*>(context)) += chunk;
        },
        &sum);
    std::printf("%ld\n", sum);
    return 0;
}
