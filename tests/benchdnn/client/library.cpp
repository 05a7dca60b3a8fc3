#include "client/library.hpp"

#include <oneapi/dnnl/dnnl.h>

#include <fmt/format.h>

#include <dlfcn.h>

#include <algorithm>
#include <set>

namespace maskwise::bench {
namespace {

// Functions that the oldest supported oneDNN lacks are looked up, never linked. The version is
// checked, too, because a preloaded library may export functions that the process's oneDNN lacks.
template <typename Function>
void find(Function& function, const char* name, int since_minor) {
    const bool is_new_enough = dnnl_version()->minor >= since_minor;
    function = is_new_enough ? reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name)) : nullptr;
}

bool may_use(dnnl_cpu_isa_t isa) {
    return (dnnl_get_effective_cpu_isa() & isa) == isa;
}

std::string isa_name() {
    if (may_use(dnnl_cpu_isa_avx512_core)) return "AVX-512";
    return may_use(dnnl_cpu_isa_avx2) ? "AVX2" : "less than AVX2";
}

std::string runtime_name(unsigned runtime) {
    switch (runtime) {
    case DNNL_RUNTIME_SEQ:
        return "sequential";
    case DNNL_RUNTIME_OMP:
        return "OpenMP";
    case DNNL_RUNTIME_TBB:
        return "TBB";
    case DNNL_RUNTIME_THREADPOOL:
        return "threadpool";
    case DNNL_RUNTIME_SYCL:
        return "SYCL";
    default:
        return fmt::format("{}", runtime);
    }
}

std::string needs(std::string_view name, int minor) {
    return fmt::format("{} needs oneDNN 3.{}, this oneDNN is 3.{}", name, minor,
                       dnnl_version()->minor);
}

bool has_mixed_types(const op& o) {
    static const std::set<std::string> kinds{"Add",      "Divide",  "MatMul",
                                             "Multiply", "SoftMax", "Subtract"};
    if (kinds.count(o.kind) == 0) return false;
    const data_type first = o.inputs.at(0).dtype;
    const auto other = [first](const logical_tensor& t) {
        return t.dtype != first && is_floating(t.dtype) && is_floating(first);
    };
    return std::ranges::any_of(o.inputs, other) || other(o.outputs.at(0));
}

std::string op_needs(const op& o, int minor) {
    const auto kind = find_op_kind(o.kind);
    if (kind->since_minor > minor) return needs(o.kind, kind->since_minor);
    for (const auto& [name, value] : o.attrs) {
        const int since = find_attr(name)->since_minor;
        if (since > minor) return needs(o.kind + "'s " + name, since);
    }
    if (minor < 8 && o.kind == "SoftMax" && o.attrs.count("mode") > 0)
        return needs("SoftMax's mode", 8);
    if (minor < 10 && o.kind == "SoftMax" && o.outputs.size() > 1)
        return needs("SoftMax's statistics", 10);
    if (minor < 8 && has_mixed_types(o)) return needs(o.kind + " with two floating-point types", 8);
    return "";
}

} // namespace

const newer_functions& newer() {
    static const newer_functions looked_up = [] {
        newer_functions functions;
        find(functions.set_fpmath_mode, "dnnl_graph_graph_set_fpmath_mode", 7);
        find(functions.execute, "dnnl_graph_compiled_partition_execute_v2", 13);
        find(functions.get_scratchpad,
             "dnnl_graph_compiled_partition_get_scratchpad_logical_tensor", 13);
        return functions;
    }();
    return looked_up;
}

std::string library_description() {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("oneDNN {}.{}.{} (CPU runtime {}, {}), Maskwise {}", v->major, v->minor,
                       v->patch, runtime_name(v->cpu_runtime), isa_name(),
                       test::plugin_is_loaded() ? "in front" : "absent");
}

std::string library_lacks(const graph& g) {
    const int minor = dnnl_version()->minor;
    std::string reason;
    for (const op& o : g.ops)
        if (reason.empty()) reason = op_needs(o, minor);
    for_each_tensor(g, [&](const logical_tensor& t) {
        if (t.property_kind == property::host_scalar && minor < 9 && reason.empty())
            reason = needs("property host_scalar", 9);
    });
    return reason;
}

bool machine_lacks(data_type type) {
    if (may_use(dnnl_cpu_isa_avx2_vnni_2)) return false;
    if (type == data_type::bf16) return !may_use(dnnl_cpu_isa_avx512_core);
    return type == data_type::f16 && !may_use(dnnl_cpu_isa_avx512_core_fp16);
}

} // namespace maskwise::bench
