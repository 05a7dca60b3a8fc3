/* usage: lookup LIBRARY. Prints the file of each function that dlsym and dlvsym find by the
   handle of LIBRARY. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static const char* file_of(void* address) {
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : "none";
}

int main(int argc, char** argv) {
    void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) return 2;
    const char* const name = "dnnl_graph_graph_create";
    printf("dlsym %s\n", file_of(dlsym(library, name)));
    printf("dlvsym %s\n", file_of(dlvsym(library, name, "DNNL_3")));
    printf("unknown %s\n", file_of(dlvsym(library, name, "DNNL_4")));
    printf("other %s\n", file_of(dlsym(library, "dnnl_version")));
    return 0;
}
