// A separate file, so that the linker takes it only if no other object defines dlsym. The oneDNN
// plugin defines it.

#include "base/older_libc.hpp"

MASKWISE_OLDER(void*, dlsym, (void* handle, const char* name), (handle, name))
