// Linked in front of libmaskwise into maskwise-bench-faulty: the API's execute with one fault
// planted in it, named by MASKWISE_BENCH_FAULT.

#include <maskwise/maskwise.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace {

using execute_fn = void (*)(const maskwise::plan*, const void*, const void*, const void*, void*);

execute_fn real_execute() {
    return reinterpret_cast<execute_fn>(dlsym(RTLD_NEXT, "_ZNK8maskwise4plan7executeEPKvS2_S2_Pv"));
}

} // namespace

void maskwise::plan::execute(const void* cond, const void* src_0, const void* src_1,
                             void* dst) const {
    const char* name = std::getenv("MASKWISE_BENCH_FAULT");
    const std::string fault = name == nullptr ? "" : name;
    if (fault == "not_executed") return;
    if (fault == "swapped_source")
        real_execute()(this, cond, src_1, src_0, dst);
    else
        real_execute()(this, cond, src_0, src_1, dst);
    auto* bytes = static_cast<unsigned char*>(dst);
    if (fault == "wrong_bit") bytes[5] ^= 1;
    if (fault == "write_in_front") bytes[-1] ^= 1;
    if (fault == "write_between") bytes[8] ^= 1; // the gap behind an i64 of stride 2
}
