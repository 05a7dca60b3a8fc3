// Functions of the loader and of threads by the versions that they had before glibc 2.34, where
// they moved from libdl and libpthread to libc. Linked where they are needed, and hidden. The
// caller is in the same library, so what dlopen and dlsym read of their caller is right.

#include "base/older_libc.hpp"

MASKWISE_OLDER(int, dladdr, (const void* address, void* info), (address, info))
MASKWISE_OLDER_AT(MASKWISE_OLDEST_INFO, int, dladdr1,
                  (const void* address, void* info, void** extra, int flags),
                  (address, info, extra, flags))
MASKWISE_OLDER(int, dlclose, (void* handle), (handle))
MASKWISE_OLDER_AT(MASKWISE_OLDEST_INFO, int, dlinfo, (void* handle, int request, void* info),
                  (handle, request, info))
MASKWISE_OLDER(char*, dlerror, (), ())
MASKWISE_OLDER(void*, dlopen, (const char* file, int mode), (file, mode))
MASKWISE_OLDER(void*, pthread_getspecific, (unsigned key), (key))
MASKWISE_OLDER(int, pthread_key_create, (unsigned* key, void (*destroy)(void*)), (key, destroy))
MASKWISE_OLDER(int, pthread_key_delete, (unsigned key), (key))
MASKWISE_OLDER(int, pthread_setspecific, (unsigned key, const void* value), (key, value))
