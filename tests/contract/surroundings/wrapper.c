/* A library to preload that wraps dlsym, as profilers do. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __aarch64__
#define OLDEST "GLIBC_2.17"
#else
#define OLDEST "GLIBC_2.2.5"
#endif

static int lookups = 0;

void* dlsym(void* handle, const char* name) {
    static void* (*next)(void*, const char*) = NULL;
    if (next == NULL) *(void**)&next = dlvsym(RTLD_NEXT, "dlsym", OLDEST);
    ++lookups;
    return next(handle, name);
}

__attribute__((destructor)) static void print_count(void) {
    if (getenv("WRAPPER_PRINTS") != NULL) fprintf(stderr, "wrapper: %d lookups\n", lookups);
}
