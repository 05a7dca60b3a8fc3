#include "transcript.hpp"

#include <cstdio>

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

} // namespace maskwise::contract
