/* Links every function of functions.inc from C. Tests that the plugin defines each function. */

#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Only the names matter here, so every function has the same type. */
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

static int is_in_plugin(any_function function) {
    Dl_info info;
    void* address = NULL;
    memcpy(&address, &function, sizeof(address));
    return dladdr(address, &info) != 0 && strstr(info.dli_fname, "libmaskwise_onednn") != NULL;
}

int main(void) {
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    int foreign = 0;
    for (size_t i = 0; i < count; ++i)
        if (!is_in_plugin(functions[i].function)) {
            printf("the plugin does not define %s\n", functions[i].name);
            ++foreign;
        }
    printf("%zu functions, %d not in the plugin\n", count, foreign);
    return foreign != 0 || count < 70;
}
