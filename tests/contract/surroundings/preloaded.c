/* A library to preload that looks up puts and malloc by dlsym(RTLD_NEXT). The lookup is right only
   if the loader sees this library as the caller. malloc is looked up during its first call, so the
   lookup must not allocate. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int puts(const char* text) {
    static int (*next)(const char*) = NULL;
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "puts");
    return next(text);
}

void* malloc(size_t size) {
    static void* (*next)(size_t) = NULL;
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "malloc");
    return next(size);
}
