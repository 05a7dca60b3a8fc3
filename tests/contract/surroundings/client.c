/* A client in C that compiles and executes a Select and a ReLU. With CLIENT_LOOKS_UP and oneDNN 3.7
   or newer, the client also runs attention. Prints one fact per line. The client is built as
   programs that are linked in several orders, and as a library that a loader opens. */

#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "oneapi/dnnl/dnnl.h"
#include "oneapi/dnnl/dnnl_graph.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef CLIENT_LOOKS_UP
#include "looked_up.h"
#endif

enum { columns = 5 };

static dnnl_graph_logical_tensor_t tensor(size_t id, dnnl_data_type_t type, int ndims,
                                          const dnnl_dims_t extents) {
    dnnl_graph_logical_tensor_t result;
    dnnl_graph_logical_tensor_init_with_dims(&result, id, type, ndims, extents,
                                             dnnl_graph_layout_type_strided,
                                             dnnl_graph_tensor_property_undef);
    return result;
}

static dnnl_graph_partition_t only_partition(dnnl_graph_op_t op, dnnl_graph_graph_t* graph) {
    dnnl_graph_partition_t partition = NULL;
    dnnl_graph_graph_create(graph, dnnl_cpu);
    dnnl_graph_add_op(*graph, op);
    dnnl_graph_graph_finalize(*graph);
    dnnl_graph_graph_filter(*graph, dnnl_graph_partition_policy_fusion);
    dnnl_graph_graph_get_partitions(*graph, 1, &partition);
    return partition;
}

static int is_of_maskwise(dnnl_graph_compiled_partition_t compiled) {
    int (*owns)(dnnl_graph_compiled_partition_t) = NULL;
    *(void**)&owns = dlsym(RTLD_DEFAULT, "maskwise_onednn_owns");
    return owns != NULL && owns(compiled);
}

/* Compiles and executes `op` with the buffers. Returns 0 if every step succeeded. */
static int run(const char* name, dnnl_engine_t engine, dnnl_graph_op_t op, size_t inputs,
               const dnnl_graph_logical_tensor_t* described, void* const* buffers) {
    dnnl_graph_graph_t graph = NULL;
    dnnl_graph_compiled_partition_t compiled = NULL;
    dnnl_graph_tensor_t tensors[4];
    const dnnl_graph_logical_tensor_t* list[4];
    dnnl_stream_t stream = NULL;
    uint8_t supported = 0;
    for (size_t i = 0; i < inputs; ++i) dnnl_graph_op_add_input(op, &described[i]);
    dnnl_graph_op_add_output(op, &described[inputs]);
    dnnl_graph_partition_t partition = only_partition(op, &graph);
    dnnl_graph_partition_is_supported(partition, &supported);
    printf("%s supported %d\n", name, supported);
    for (size_t i = 0; i <= inputs; ++i) {
        list[i] = &described[i];
        dnnl_graph_tensor_create(&tensors[i], &described[i], engine, buffers[i]);
    }
    dnnl_graph_compiled_partition_create(&compiled, partition);
    int status =
        dnnl_graph_partition_compile(partition, compiled, inputs, list, 1, list + inputs, engine);
    printf("%s compile %d\n", name, status);
    printf("%s maskwise %d\n", name, is_of_maskwise(compiled));
    if (status == 0) {
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
        status = dnnl_graph_compiled_partition_execute(
            compiled, stream, inputs, (const_dnnl_graph_tensor_t*)tensors, 1,
            (const_dnnl_graph_tensor_t*)tensors + inputs);
        dnnl_stream_wait(stream);
        dnnl_stream_destroy(stream);
        printf("%s execute %d\n", name, status);
    }
    for (size_t i = 0; i <= inputs; ++i) dnnl_graph_tensor_destroy(tensors[i]);
    dnnl_graph_compiled_partition_destroy(compiled);
    dnnl_graph_partition_destroy(partition);
    dnnl_graph_graph_destroy(graph);
    dnnl_graph_op_destroy(op);
    return status;
}

/* CLIENT_ROWS sets the number of rows. With many rows, several threads run the Select. */
static void run_select(dnnl_engine_t engine) {
    const char* const wanted = getenv("CLIENT_ROWS");
    const int rows = wanted != NULL ? atoi(wanted) : 3, elements = rows * columns;
    const dnnl_dims_t all = {rows, columns}, row = {columns};
    const dnnl_graph_logical_tensor_t described[] = {
        tensor(0, dnnl_boolean, 1, row), tensor(1, dnnl_f32, 2, all), tensor(2, dnnl_f32, 2, all),
        tensor(3, dnnl_f32, 2, all)};
    uint8_t cond[columns];
    float* const memory = malloc(3 * sizeof(float) * (size_t)elements);
    float *const src_0 = memory, *const src_1 = memory + elements, *const dst = src_1 + elements;
    for (int i = 0; i < columns; ++i) cond[i] = (uint8_t)(i % 3);
    for (int i = 0; i < elements; ++i) {
        src_0[i] = (float)(i + 1);
        src_1[i] = (float)(i + 100);
        dst[i] = -1;
    }
    void* const buffers[] = {cond, src_0, src_1, dst};
    dnnl_graph_op_t op = NULL;
    dnnl_graph_op_create(&op, 7, dnnl_graph_op_select, "chosen");
    if (run("select", engine, op, 3, described, buffers) == 0) {
        int wrong = 0;
        for (int i = 0; i < elements; ++i)
            wrong += dst[i] != (cond[i % columns] != 0 ? src_0[i] : src_1[i]);
        printf("select wrong %d\n", wrong);
    }
    free(memory);
}

static void run_relu(dnnl_engine_t engine) {
    enum { rows = 3, elements = rows * columns };
    const dnnl_dims_t all = {rows, columns};
    const dnnl_graph_logical_tensor_t described[] = {tensor(0, dnnl_f32, 2, all),
                                                     tensor(1, dnnl_f32, 2, all)};
    float src[elements], dst[elements];
    for (int i = 0; i < elements; ++i) src[i] = (float)(i - 7);
    void* const buffers[] = {src, dst};
    dnnl_graph_op_t op = NULL;
    dnnl_graph_op_create(&op, 8, dnnl_graph_op_relu, "rectified");
    if (run("relu", engine, op, 1, described, buffers) != 0) return;
    int wrong = 0;
    for (int i = 0; i < elements; ++i) wrong += dst[i] != (src[i] > 0 ? src[i] : 0);
    printf("relu wrong %d\n", wrong);
}

#if defined CLIENT_LOOKS_UP && DNNL_VERSION_MINOR >= 7
#include "attention.h"
#else
static void run_attention(dnnl_engine_t engine) {
    (void)engine;
}
#endif

__attribute__((visibility("default"))) int run_client(void) {
    dnnl_engine_t engine = NULL;
    const char* verbose = getenv("CLIENT_SETS_VERBOSE");
    if (verbose != NULL) dnnl_set_verbose(atoi(verbose));
    const int status = dnnl_engine_create(&engine, dnnl_cpu, 0);
    printf("engine %d\n", status);
    if (status != 0) return 1;
    run_select(engine);
    run_relu(engine);
    run_attention(engine);
    dnnl_engine_destroy(engine);
    if (getenv("CLIENT_WAITS") != NULL) { /* until standard input is closed */
        printf("waits %d\n", (int)getpid());
        fflush(stdout);
        (void)getchar();
    }
    return 0;
}

int main(void) {
    return run_client();
}
