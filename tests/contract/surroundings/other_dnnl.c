/* Imitates four oneDNN libraries: one older than the Graph API, one of an unknown major version,
   one with another file name, and one with versioned symbols. */

typedef struct {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
} version_t;

const version_t* dnnl_version(void) {
    static const version_t version = {OTHER_MAJOR, OTHER_MINOR, 0, "none", 1, 0};
    return &version;
}

#ifdef OTHER_HAS_GRAPH
int dnnl_graph_graph_create(void** graph, int engine_kind) {
    static int object;
    (void)engine_kind;
    *graph = &object;
    return 0;
}
#endif
