#include "chain_memory.hpp"

#include "support/numbers.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise::fuzz {
namespace {

// A boolean is read as its byte.
test::element element_of(dnnl_data_type_t type) {
    return type == dnnl_boolean ? test::element::u8 : static_cast<test::element>(type);
}

} // namespace

double load(const laid_out& from, const indices& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
        offset += index[i] * from.tensor.layout.strides[i];
    offset *= test::width_bytes(from.tensor);
    return test::load(&from.bytes[static_cast<std::size_t>(offset)],
                      element_of(from.tensor.data_type));
}

void store(std::byte* to, dnnl_data_type_t type, float value) {
    constexpr float most_f16 = 65504;
    if (type == dnnl_f16 && std::isfinite(value)) value = std::clamp(value, -most_f16, most_f16);
    test::store(to, element_of(type), static_cast<double>(value));
}

bool step(indices& index, const logical_tensor& tensor) {
    return test::advance(index, {tensor.dims, static_cast<std::size_t>(tensor.ndims)});
}

} // namespace maskwise::fuzz
