/* loader LIBRARY: opens a client that is a library as an interpreter opens its extensions, with
   RTLD_LOCAL, and runs it. */

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
    void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "loader: %s\n", argc == 2 ? dlerror() : "expected one library");
        return 2;
    }
    int (*run_client)(void) = NULL;
    *(void**)&run_client = dlsym(library, "run_client");
    return run_client != NULL ? run_client() : 3;
}
