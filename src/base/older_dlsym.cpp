// A file of its own, as the linker takes it only where nothing else defines dlsym: the oneDNN
// plugin does.

#include "base/older_libc.hpp"

MASKWISE_OLDER(void*, dlsym, (void* handle, const char* name), (handle, name))
