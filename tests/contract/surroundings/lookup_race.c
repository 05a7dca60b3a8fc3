/* usage: lookup_race LIBRARY CONSTRUCTED. A thread makes the process's first lookup in LIBRARY. A
   sleep of 0.3 s slows this lookup down. Meanwhile the main thread opens CONSTRUCTED. The
   constructor of CONSTRUCTED holds the loader's lock and looks up in LIBRARY, too. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static void* library;
static atomic_int is_looking;

typedef int (*visitor)(struct dl_phdr_info*, size_t, void*);

/* The plugin calls this function when it first searches for oneDNN. */
__attribute__((visibility("default"))) int dl_iterate_phdr(visitor visit, void* data) {
    int (*next)(visitor, void*) = NULL;
    *(void**)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (library != NULL && !atomic_exchange(&is_looking, 1)) usleep(300000);
    return next(visit, data);
}

static void* look_up(void* unused) {
    (void)unused;
    return dlsym(library, "dnnl_graph_graph_create");
}

int main(int argc, char** argv) {
    pthread_t thread;
    void* symbol = NULL;
    if (argc < 3 || (library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) return 2;
    alarm(20);
    pthread_create(&thread, NULL, look_up, NULL);
    for (int i = 0; i < 1000 && !is_looking; ++i) usleep(1000);
    if (dlopen(argv[2], RTLD_NOW) == NULL) return 3;
    pthread_join(thread, &symbol);
    printf("slow %d, both %d\n", is_looking, symbol != NULL);
    return 0;
}
