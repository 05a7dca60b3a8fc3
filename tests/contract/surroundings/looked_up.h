/* With this header, client.c links no oneDNN. The header opens the file CLIENT_OPENS and looks up
   each function by its handle. CLIENT_MODE holds letters: g for RTLD_GLOBAL (default: RTLD_LOCAL),
   d for RTLD_DEEPBIND, n for a new namespace (dlmopen). */

#include <stdio.h>
#include <stdlib.h>

static int has_mode(char letter) {
    const char* const mode = getenv("CLIENT_MODE");
    return mode != NULL && strchr(mode, letter) != NULL;
}

static void* opened(void) {
    static void* handle = NULL;
    if (handle != NULL) return handle;
    const int scope = has_mode('g') ? RTLD_GLOBAL : RTLD_LOCAL;
    const int flags = RTLD_NOW | scope | (has_mode('d') ? RTLD_DEEPBIND : 0);
    const char* const also = getenv("CLIENT_OPENS_FIRST");
    if (also != NULL && dlopen(also, flags) == NULL) fprintf(stderr, "client: %s\n", dlerror());
    const char* const file = getenv("CLIENT_OPENS");
    handle = has_mode('n') ? dlmopen(LM_ID_NEWLM, file, RTLD_NOW) : dlopen(file, flags);
    if (handle == NULL) {
        fprintf(stderr, "client: %s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void* looked_up(const char* name) {
    return dlsym(opened(), name);
}

#define LOOKED_UP(name) ((__typeof__(&name))looked_up(#name))

#define dnnl_engine_create LOOKED_UP(dnnl_engine_create)
#define dnnl_engine_destroy LOOKED_UP(dnnl_engine_destroy)
#define dnnl_set_verbose LOOKED_UP(dnnl_set_verbose)
#define dnnl_stream_create LOOKED_UP(dnnl_stream_create)
#define dnnl_stream_destroy LOOKED_UP(dnnl_stream_destroy)
#define dnnl_stream_wait LOOKED_UP(dnnl_stream_wait)
#define dnnl_graph_add_op LOOKED_UP(dnnl_graph_add_op)
#define dnnl_graph_compiled_partition_create LOOKED_UP(dnnl_graph_compiled_partition_create)
#define dnnl_graph_compiled_partition_destroy LOOKED_UP(dnnl_graph_compiled_partition_destroy)
#define dnnl_graph_compiled_partition_execute LOOKED_UP(dnnl_graph_compiled_partition_execute)
#define dnnl_graph_graph_create LOOKED_UP(dnnl_graph_graph_create)
#define dnnl_graph_graph_destroy LOOKED_UP(dnnl_graph_graph_destroy)
#define dnnl_graph_graph_filter LOOKED_UP(dnnl_graph_graph_filter)
#define dnnl_graph_graph_finalize LOOKED_UP(dnnl_graph_graph_finalize)
#define dnnl_graph_graph_get_partition_num LOOKED_UP(dnnl_graph_graph_get_partition_num)
#define dnnl_graph_graph_get_partitions LOOKED_UP(dnnl_graph_graph_get_partitions)
#define dnnl_graph_logical_tensor_init_with_dims LOOKED_UP(dnnl_graph_logical_tensor_init_with_dims)
#define dnnl_graph_op_add_input LOOKED_UP(dnnl_graph_op_add_input)
#define dnnl_graph_op_add_output LOOKED_UP(dnnl_graph_op_add_output)
#define dnnl_graph_op_create LOOKED_UP(dnnl_graph_op_create)
#define dnnl_graph_op_destroy LOOKED_UP(dnnl_graph_op_destroy)
#define dnnl_graph_op_set_attr_bool LOOKED_UP(dnnl_graph_op_set_attr_bool)
#define dnnl_graph_op_set_attr_s64 LOOKED_UP(dnnl_graph_op_set_attr_s64)
#define dnnl_graph_partition_compile LOOKED_UP(dnnl_graph_partition_compile)
#define dnnl_graph_partition_destroy LOOKED_UP(dnnl_graph_partition_destroy)
#define dnnl_graph_partition_get_input_ports LOOKED_UP(dnnl_graph_partition_get_input_ports)
#define dnnl_graph_partition_get_input_ports_num LOOKED_UP(dnnl_graph_partition_get_input_ports_num)
#define dnnl_graph_partition_is_supported LOOKED_UP(dnnl_graph_partition_is_supported)
#define dnnl_graph_tensor_create LOOKED_UP(dnnl_graph_tensor_create)
#define dnnl_graph_tensor_destroy LOOKED_UP(dnnl_graph_tensor_destroy)
