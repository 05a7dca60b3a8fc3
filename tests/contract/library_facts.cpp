#include "library_facts.hpp"

#include "graph_client.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <exception>

namespace maskwise::contract {
namespace {

// Where oneDNN throws, its cache keeps an entry that points into the partition: never destroyed.
std::vector<partition>& asked() {
    static auto& kept = *new std::vector<partition>;
    return kept;
}

bool runs_mat_mul(tensor_type type) {
    const extents square{8, 8};
    return runs_alone(make(1, kind::MatMul, {dense(1, square, type), dense(2, square, type)},
                           dense(3, square, type)));
}

library_facts ask() {
    const auto may_use = [](dnnl_cpu_isa_t isa) {
        return (dnnl_get_effective_cpu_isa() & isa) == isa;
    };
    return {dnnl_version()->minor, may_use(dnnl_cpu_isa_avx2), may_use(dnnl_cpu_isa_avx512_core),
            runs_mat_mul(tensor_type::bf16), runs_mat_mul(tensor_type::f16)};
}

} // namespace

const library_facts& library() {
    static const library_facts facts = ask();
    return facts;
}

bool merges() {
    return plugin_is_loaded() && library().avx2;
}

bool runs_alone(const op& what) {
    const auto partitions = partitions_of({what});
    if (partitions.size() != 1 || !partitions[0].is_supported()) return false;
    asked().push_back(partitions[0]);
    try {
        partitions[0].compile(partitions[0].get_input_ports(), partitions[0].get_output_ports(),
                              engine());
        return true;
    } catch (const std::exception&) { // dnnl::error or std::future_error
        return false;
    }
}

} // namespace maskwise::contract
