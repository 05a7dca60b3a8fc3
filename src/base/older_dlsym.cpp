// This is a separate file, so that the linker uses this dlsym only if no other object defines
// dlsym. The oneDNN plugin defines another dlsym.

#include "base/older_libc.hpp"

MASKWISE_OLDER(void*, dlsym, (void* handle, const char* name), (handle, name))
