// The loader's functions by the versions that glibc had before 2.34, where they moved from libdl to
// libc. Linked where they are needed, and hidden. The caller is in the same library, so what dlopen
// and dlsym read of their caller is right.

#ifdef __aarch64__
#define MASKWISE_OLDEST "GLIBC_2.17"
#else
#define MASKWISE_OLDEST "GLIBC_2.2.5"
#endif
#define MASKWISE_OLDER(name) __asm__(".symver older_" #name "," #name "@" MASKWISE_OLDEST)
#define MASKWISE_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

int older_dladdr(const void* address, void* info);
int older_dlclose(void* handle);
char* older_dlerror();
void* older_dlopen(const char* file, int mode);
void* older_dlsym(void* handle, const char* name);
MASKWISE_OLDER(dladdr);
MASKWISE_OLDER(dlclose);
MASKWISE_OLDER(dlerror);
MASKWISE_OLDER(dlopen);
MASKWISE_OLDER(dlsym);

MASKWISE_HIDDEN int dladdr(const void* address, void* info) {
    return older_dladdr(address, info);
}
MASKWISE_HIDDEN int dlclose(void* handle) {
    return older_dlclose(handle);
}
MASKWISE_HIDDEN char* dlerror() {
    return older_dlerror();
}
MASKWISE_HIDDEN void* dlopen(const char* file, int mode) {
    return older_dlopen(file, mode);
}
MASKWISE_HIDDEN void* dlsym(void* handle, const char* name) {
    return older_dlsym(handle, name);
}
}
