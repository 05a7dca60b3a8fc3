#include "data/tensor.hpp"

#include "support/numbers.hpp"

namespace maskwise::bench {
namespace {

test::element element_of(data_type type) {
    const auto known = static_cast<test::element>(type); // both enumerations have oneDNN's numbers
    if (test::width_bytes(known) == 0)
        throw input_error("the oracle cannot read numbers of " + std::string(info(type).name));
    return known;
}

} // namespace

tensor::tensor(data_type type, dims extents)
    : dtype(type), shape(std::move(extents)),
      bytes(static_cast<std::size_t>(test::count_of(shape)) * info(type).size) {}

std::size_t tensor::count() const {
    return static_cast<std::size_t>(test::count_of(shape));
}

double load_number(data_type type, const std::byte* bytes) {
    return test::load(bytes, element_of(type));
}

void store_number(data_type type, double value, std::byte* bytes) {
    test::store(bytes, element_of(type), value);
}

std::vector<double> to_doubles(const tensor& t) {
    std::vector<double> values(t.count());
    const std::size_t width = t.width();
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = load_number(t.dtype, t.bytes.data() + i * width);
    return values;
}

tensor from_doubles(data_type type, dims shape, const std::vector<double>& values) {
    tensor t(type, std::move(shape));
    const std::size_t width = t.width();
    for (std::size_t i = 0; i < values.size(); ++i)
        store_number(type, values[i], t.bytes.data() + i * width);
    return t;
}

double roundoff(data_type type) {
    return type == data_type::f64    ? 0x1p-53
           : type == data_type::f32  ? 0x1p-24
           : type == data_type::f16  ? 0x1p-11
           : type == data_type::bf16 ? 0x1p-8
                                     : 0.0;
}

} // namespace maskwise::bench
