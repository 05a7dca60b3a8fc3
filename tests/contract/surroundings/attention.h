/* For client.c: causal attention whose mask is computed from indices. 2 heads, 48 rows and keys. */

#include <math.h>

enum {
    heads = 2,
    rows = 48,
    depth = 16,
    scores = heads * rows * rows,
    values = heads * rows * depth
};

typedef struct {
    dnnl_graph_graph_t graph;
    size_t operators;
} builder;

static void add(builder* to, dnnl_graph_op_kind_t kind,
                const dnnl_graph_logical_tensor_t* const* in, size_t inputs,
                const dnnl_graph_logical_tensor_t* out, dnnl_graph_op_attr_t attribute,
                int64_t value) {
    dnnl_graph_op_t op = NULL;
    const uint8_t flag = (uint8_t)value;
    dnnl_graph_op_create(&op, 100 + to->operators++, kind, "operator");
    for (size_t i = 0; i < inputs; ++i) dnnl_graph_op_add_input(op, in[i]);
    dnnl_graph_op_add_output(op, out);
    if (attribute == dnnl_graph_op_attr_transpose_b)
        dnnl_graph_op_set_attr_bool(op, attribute, &flag, 1);
    if (attribute == dnnl_graph_op_attr_axis) dnnl_graph_op_set_attr_s64(op, attribute, &value, 1);
    dnnl_graph_add_op(to->graph, op);
    dnnl_graph_op_destroy(op);
}

static int wrong_values(const float* q, const float* k, const float* v, const float* dst) {
    int wrong = 0;
    for (int head = 0; head < heads; ++head)
        for (int row = 0; row < rows; ++row) {
            const int first = head * rows * depth;
            double sum = 0, out[depth] = {0};
            for (int key = 0; key <= row; ++key) {
                double score = 0;
                for (int d = 0; d < depth; ++d)
                    score += (double)q[first + row * depth + d] * k[first + key * depth + d];
                sum += exp(score);
                for (int d = 0; d < depth; ++d) out[d] += exp(score) * v[first + key * depth + d];
            }
            for (int d = 0; d < depth; ++d)
                wrong += !(fabs(out[d] / sum - dst[first + row * depth + d]) < 1e-5);
        }
    return wrong;
}

enum { q, k, v, fill, dst, score, row, key, mask, masked, weights, count };

static void describe(dnnl_graph_logical_tensor_t* t) {
    const dnnl_dims_t in = {1, heads, rows, depth}, all = {1, heads, rows, rows}, one = {1};
    for (int i = 0; i < count; ++i) {
        const int is_index = i == row || i == key, is_value = i <= v || i == dst;
        t[i] = tensor((size_t)i,
                      is_index    ? dnnl_s32
                      : i == mask ? dnnl_boolean
                                  : dnnl_f32,
                      i == fill ? 1 : 4,
                      i == fill  ? one
                      : is_value ? in
                                 : all);
    }
}

static dnnl_graph_graph_t attention_graph(const dnnl_graph_logical_tensor_t* t) {
    builder to = {NULL, 0};
    dnnl_graph_graph_create(&to.graph, dnnl_cpu);
#define ADD(kind, output, attribute, value, ...)                                                   \
    do {                                                                                           \
        const dnnl_graph_logical_tensor_t* const inputs[] = {__VA_ARGS__};                         \
        add(&to, dnnl_graph_op_##kind, inputs, sizeof inputs / sizeof *inputs, &t[output],         \
            dnnl_graph_op_attr_##attribute, value);                                                \
    } while (0)
    ADD(matmul, score, transpose_b, 1, &t[q], &t[k]);
    ADD(gen_index, row, axis, -2, &t[score]);
    ADD(gen_index, key, axis, -1, &t[score]);
    ADD(greater_equal, mask, undef, 0, &t[row], &t[key]);
    ADD(select, masked, undef, 0, &t[mask], &t[score], &t[fill]);
    ADD(softmax, weights, axis, -1, &t[masked]);
    ADD(matmul, dst, transpose_b, 0, &t[weights], &t[v]);
#undef ADD
    dnnl_graph_graph_finalize(to.graph);
    dnnl_graph_graph_filter(to.graph, dnnl_graph_partition_policy_fusion);
    return to.graph;
}

static void run_partition(dnnl_engine_t engine, dnnl_graph_partition_t partition,
                          const dnnl_graph_logical_tensor_t* t, float* const* buffers) {
    dnnl_graph_compiled_partition_t compiled = NULL;
    dnnl_graph_logical_tensor_t ordered[5];
    const dnnl_graph_logical_tensor_t* described[5];
    const dnnl_graph_logical_tensor_t* result[] = {&t[dst]};
    dnnl_graph_tensor_t tensors[6];
    dnnl_stream_t stream = NULL;
    size_t ports = 0;
    dnnl_graph_partition_get_input_ports_num(partition, &ports);
    dnnl_graph_partition_get_input_ports(partition, ports, ordered);
    for (size_t i = 0; i < ports; ++i) {
        described[i] = &t[ordered[i].id];
        dnnl_graph_tensor_create(&tensors[i], described[i], engine, buffers[ordered[i].id]);
    }
    dnnl_graph_tensor_create(&tensors[ports], &t[dst], engine, buffers[dst]);
    dnnl_graph_compiled_partition_create(&compiled, partition);
    printf("attention compile %d\n",
           dnnl_graph_partition_compile(partition, compiled, ports, described, 1, result, engine));
    printf("attention maskwise %d\n", is_of_maskwise(compiled));
    dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    dnnl_graph_compiled_partition_execute(compiled, stream, ports,
                                          (const_dnnl_graph_tensor_t*)tensors, 1,
                                          (const_dnnl_graph_tensor_t*)&tensors[ports]);
    dnnl_stream_wait(stream);
    dnnl_stream_destroy(stream);
    for (size_t i = 0; i <= ports; ++i) dnnl_graph_tensor_destroy(tensors[i]);
    dnnl_graph_compiled_partition_destroy(compiled);
}

static void run_attention(dnnl_engine_t engine) {
    static float memory[4 * values], lowest = -INFINITY;
    float* const buffers[] = {memory, memory + values, memory + 2 * values, &lowest,
                              memory + 3 * values};
    dnnl_graph_logical_tensor_t t[count];
    dnnl_graph_partition_t partition = NULL;
    size_t partitions = 0;
    for (int i = 0; i < 3 * values; ++i) memory[i] = (float)(i * 37 % 101 - 50) / 100;
    describe(t);
    const dnnl_graph_graph_t graph = attention_graph(t);
    dnnl_graph_graph_get_partition_num(graph, &partitions);
    printf("attention partitions %zu\n", partitions);
    if (partitions == 1) {
        dnnl_graph_graph_get_partitions(graph, 1, &partition);
        run_partition(engine, partition, t, buffers);
        printf("attention wrong %d\n",
               wrong_values(buffers[q], buffers[k], buffers[v], buffers[dst]));
        dnnl_graph_partition_destroy(partition);
    }
    dnnl_graph_graph_destroy(graph);
}
