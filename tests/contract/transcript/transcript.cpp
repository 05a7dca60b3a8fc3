#include "transcript.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace maskwise::contract {

void transcript::note(const std::string& call, const std::string& answer) const {
    std::printf("%s|%s|%s\n", scenario_.c_str(), call.c_str(), answer.c_str());
    std::fflush(stdout);
}

void transcript::status(const std::string& call, dnnl_status_t status) const {
    note(call, std::to_string(static_cast<int>(status)));
}

namespace {

std::string joined(const std::int64_t* values, int count, char separator) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        if (i > 0) text += separator;
        text += values[i] == DNNL_GRAPH_UNKNOWN_DIM ? "?" : std::to_string(values[i]);
    }
    return text;
}

std::string layout_text(const logical_tensor& tensor) {
    switch (tensor.layout_type) {
    case dnnl_graph_layout_type_strided:
        return joined(tensor.layout.strides, tensor.ndims, 's');
    case dnnl_graph_layout_type_any:
        return "any";
    case dnnl_graph_layout_type_opaque:
        return "opaque";
    default:
        return "undef";
    }
}

} // namespace

std::string text_of(const logical_tensor& tensor) {
    if (tensor.ndims < 0) return "unknown:" + layout_text({});
    return joined(tensor.dims, tensor.ndims, 'x') + ':' + layout_text(tensor);
}

dims row_major(const dims& extents) {
    dims strides(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;)
        strides[i - 1] = strides[i] * std::max<std::int64_t>(extents[i], 1);
    return strides;
}

namespace {

logical_tensor described(std::size_t id, dnnl_data_type_t type, const dims& extents) {
    logical_tensor tensor{};
    tensor.id = id;
    tensor.ndims = static_cast<int>(extents.size());
    tensor.data_type = type;
    std::copy(extents.begin(), extents.end(), tensor.dims);
    return tensor;
}

} // namespace

logical_tensor strided(std::size_t id, dnnl_data_type_t type, const dims& extents,
                       const dims& strides) {
    logical_tensor tensor = described(id, type, extents);
    tensor.layout_type = dnnl_graph_layout_type_strided;
    std::copy(strides.begin(), strides.end(), tensor.layout.strides);
    return tensor;
}

logical_tensor dense(std::size_t id, dnnl_data_type_t type, const dims& extents) {
    return strided(id, type, extents, row_major(extents));
}

logical_tensor any_layout(std::size_t id, dnnl_data_type_t type, const dims& extents) {
    logical_tensor tensor = described(id, type, extents);
    tensor.layout_type = dnnl_graph_layout_type_any;
    return tensor;
}

logical_tensor unknown_rank(std::size_t id, dnnl_data_type_t type) {
    logical_tensor tensor = strided(id, type, {}, {});
    tensor.ndims = DNNL_GRAPH_UNKNOWN_NDIMS;
    return tensor;
}

dnnl_engine_t cpu_engine() {
    static const dnnl_engine_t engine = [] {
        dnnl_engine_t made = nullptr;
        if (dnnl_engine_create(&made, dnnl_cpu, 0) != dnnl_success) std::abort();
        return made;
    }();
    return engine;
}

dnnl_stream_t cpu_stream() {
    static const dnnl_stream_t stream = [] {
        dnnl_stream_t made = nullptr;
        if (dnnl_stream_create(&made, cpu_engine(), dnnl_stream_default_flags) != dnnl_success)
            std::abort();
        return made;
    }();
    return stream;
}

} // namespace maskwise::contract
