// Replaces oneTBB of src/exec. The library uses only the threads that ONNX Runtime lends it in a
// call, and needs no libtbb.
#include "exec/parallel.hpp"

namespace maskwise {

int available_threads() {
    return 1;
}

void parallel_run(std::int64_t chunks, chunk_fn body, const void* context) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

} // namespace maskwise
