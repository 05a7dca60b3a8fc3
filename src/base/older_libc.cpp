// Functions of the loader and of threads by the versions that they had before glibc 2.34, where
// they moved from libdl and libpthread to libc. Linked where they are needed, and hidden. The
// caller is in the same library, so what dlopen and dlsym read of their caller is right.

#ifdef __aarch64__
#define MASKWISE_OLDEST "GLIBC_2.17"
#define MASKWISE_OLDEST_DLADDR1 "GLIBC_2.17"
#else
#define MASKWISE_OLDEST "GLIBC_2.2.5"
#define MASKWISE_OLDEST_DLADDR1 "GLIBC_2.3.3"
#endif
#define MASKWISE_OLDER_AT(version, result, name, parameters, arguments)                            \
    extern "C" result older_##name parameters;                                                     \
    __asm__(".symver older_" #name "," #name "@" version);                                         \
    extern "C" __attribute__((visibility("hidden"))) result name parameters {                      \
        return older_##name arguments;                                                             \
    }
#define MASKWISE_OLDER(result, name, parameters, arguments)                                        \
    MASKWISE_OLDER_AT(MASKWISE_OLDEST, result, name, parameters, arguments)

MASKWISE_OLDER(int, dladdr, (const void* address, void* info), (address, info))
MASKWISE_OLDER_AT(MASKWISE_OLDEST_DLADDR1, int, dladdr1,
                  (const void* address, void* info, void** extra, int flags),
                  (address, info, extra, flags))
MASKWISE_OLDER(int, dlclose, (void* handle), (handle))
MASKWISE_OLDER(char*, dlerror, (), ())
MASKWISE_OLDER(void*, dlopen, (const char* file, int mode), (file, mode))
MASKWISE_OLDER(void*, dlsym, (void* handle, const char* name), (handle, name))
MASKWISE_OLDER(void*, pthread_getspecific, (unsigned key), (key))
MASKWISE_OLDER(int, pthread_key_create, (unsigned* key, void (*destroy)(void*)), (key, destroy))
MASKWISE_OLDER(int, pthread_key_delete, (unsigned key), (key))
MASKWISE_OLDER(int, pthread_setspecific, (unsigned key, const void* value), (key, value))
