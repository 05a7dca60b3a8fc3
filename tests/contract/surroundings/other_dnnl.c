/* Libraries that call themselves libdnnl and are not what the plugin looks for: one of before the
   Graph API, one of a major version that nobody knows yet. */

typedef struct {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
} version_t;

const version_t* dnnl_version(void) {
    static const version_t version = {OTHER_MAJOR, 1, 0, "none", 1, 0};
    return &version;
}

#ifdef OTHER_HAS_GRAPH
int dnnl_graph_graph_create(void** graph, int engine_kind) {
    (void)engine_kind;
    *graph = 0;
    return 3;
}
#endif
