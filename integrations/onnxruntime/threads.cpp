// In place of src/exec's oneTBB: the library has no threads but those that ONNX Runtime lends it by
// a loop, and needs no libtbb.
#include "exec/parallel.hpp"

namespace maskwise {

int available_threads() {
    return 1;
}

void parallel_run(std::int64_t chunks, chunk_fn body, const void* context) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

} // namespace maskwise
