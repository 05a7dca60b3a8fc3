// Binds functions of libdl and libpthread to the symbol versions from before glibc 2.34, which
// moved these functions to libc. The definitions are hidden, and linked only if needed. glibc's
// dlopen and dlsym act for the library that calls them, so each library links its own copy of these
// functions.

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
MASKWISE_OLDER(int, pthread_mutex_trylock, (void* mutex), (mutex))
MASKWISE_OLDER(int, pthread_setspecific, (unsigned key, const void* value), (key, value))
