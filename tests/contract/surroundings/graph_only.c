/* A client that uses only oneDNN's Graph functions. If libdnnl is linked after the plugin with
   --as-needed, the client does not depend on libdnnl. The client declares the functions itself, to
   build without oneDNN. */

#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>

typedef struct graph* graph_t;
extern int dnnl_graph_graph_create(graph_t* graph, int engine_kind);
extern int dnnl_graph_graph_finalize(graph_t graph);
extern int dnnl_graph_graph_is_finalized(graph_t graph, uint8_t* finalized);
extern int dnnl_graph_graph_destroy(graph_t graph);

__attribute__((visibility("default"))) int run_client(void) {
    graph_t graph = NULL;
    uint8_t finalized = 0;
    printf("secure %lu\n", getauxval(AT_SECURE));
    printf("create %d\n", dnnl_graph_graph_create(&graph, 1));
    if (graph == NULL) return 0;
    printf("finalize %d\n", dnnl_graph_graph_finalize(graph));
    printf("is_finalized %d\n", dnnl_graph_graph_is_finalized(graph, &finalized));
    printf("finalized %d\n", finalized);
    printf("destroy %d\n", dnnl_graph_graph_destroy(graph));
    return 0;
}

int main(void) {
    return run_client();
}
