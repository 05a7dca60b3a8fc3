// Replaces the functions of src/exec that use oneTBB. The library runs only on the threads that
// ONNX Runtime provides for a call, so it needs no libtbb.
#include "exec/parallel.hpp"

namespace maskwise {

int available_threads() {
    return 1;
}

void parallel_run(std::int64_t chunks, chunk_fn body, const void* context) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

} // namespace maskwise
