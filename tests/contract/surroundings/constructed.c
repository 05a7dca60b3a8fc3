/* A library whose constructor looks up a function by the handle of the loaded oneDNN. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void look_up(void) {
    void* const library = dlopen(getenv("CONSTRUCTED_OPENS"), RTLD_NOW | RTLD_NOLOAD);
    printf("constructed %d\n",
           library != NULL && dlsym(library, "dnnl_graph_graph_create") != NULL);
}
