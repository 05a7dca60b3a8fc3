// Select through oneDNN Graph: dst = cond ? src_0 : src_1. The program uses oneDNN only. If
// Maskwise is loaded before libdnnl, by link order or LD_PRELOAD, Maskwise runs the Select of the
// unchanged program.
#include <oneapi/dnnl/dnnl_graph.hpp>

#include <cstdint>
#include <iostream>
#include <vector>

using namespace dnnl::graph;
using lt = logical_tensor;

int main() {
    // cond has one element per column and src_1 is one fill value. cond and src_1 broadcast to
    // {2, 4}.
    const lt cond(0, lt::data_type::boolean, {1, 4}, lt::layout_type::strided);
    const lt src_0(1, lt::data_type::f32, {2, 4}, lt::layout_type::strided);
    const lt src_1(2, lt::data_type::f32, {1, 1}, lt::layout_type::strided);
    const lt dst(3, lt::data_type::f32, {2, 4}, lt::layout_type::strided);
    std::vector<std::uint8_t> keep{1, 0, 1, 0};
    std::vector<float> scores{1, 2, 3, 4, 5, 6, 7, 8}, masked{-1e9f}, result(8);

    graph g(dnnl::engine::kind::cpu);
    g.add_op(op(0, op::kind::Select, {cond, src_0, src_1}, {dst}, "select"));
    g.finalize();
    const partition part = g.get_partitions().front();
    if (!part.is_supported()) {
        std::cout << "this oneDNN does not support Select\n";
        return 1;
    }

    const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(cpu);
    const compiled_partition select = part.compile({cond, src_0, src_1}, {dst}, cpu);
    select.execute(stream,
                   {tensor(cond, cpu, keep.data()), tensor(src_0, cpu, scores.data()),
                    tensor(src_1, cpu, masked.data())},
                   {tensor(dst, cpu, result.data())});
    stream.wait();

    std::cout << "select:";
    for (float value : result) std::cout << ' ' << value;
    std::cout << '\n';
}
