/* usage: loader LIBRARY... Opens libraries with RTLD_LOCAL, as an interpreter opens its extensions.
   Runs the last library, which is a client. */

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
    void* library = NULL;
    for (int i = 1; i < argc; ++i) {
        library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "loader: %s\n", dlerror());
            return 2;
        }
    }
    int (*run_client)(void) = NULL;
    if (library != NULL) *(void**)&run_client = dlsym(library, "run_client");
    return run_client != NULL ? run_client() : 3;
}
