/* Every function of the one list, by name, from C: it links, and each symbol is the plugin's own.
 */

#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Only names count here, so every function is declared alike. */
#define FORWARD(name, since, parameters, arguments) extern void dnnl_graph_##name(void);
#define HOOK(name, since, parameters, arguments) extern void dnnl_graph_##name(void);
#include "onednn/library/functions.inc"
#undef FORWARD
#undef HOOK
extern void dnnl_set_verbose(void);
extern void maskwise_onednn_owns(void);

typedef void (*any_function)(void);

static const struct {
    const char* name;
    any_function function;
} functions[] = {
#define FORWARD(name, since, parameters, arguments) {"dnnl_graph_" #name, dnnl_graph_##name},
#define HOOK(name, since, parameters, arguments) {"dnnl_graph_" #name, dnnl_graph_##name},
#include "onednn/library/functions.inc"
#undef FORWARD
#undef HOOK
    {"dnnl_set_verbose", dnnl_set_verbose},
    {"maskwise_onednn_owns", maskwise_onednn_owns},
};

static int is_the_plugins(any_function function) {
    Dl_info info;
    void* address = NULL;
    memcpy(&address, &function, sizeof(address));
    return dladdr(address, &info) != 0 && strstr(info.dli_fname, "libmaskwise_onednn") != NULL;
}

int main(void) {
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    int strangers = 0;
    for (size_t i = 0; i < count; ++i)
        if (!is_the_plugins(functions[i].function)) {
            printf("%s is not the plugin's\n", functions[i].name);
            ++strangers;
        }
    printf("%zu functions, %d strangers\n", count, strangers);
    return strangers != 0 || count < 70;
}
