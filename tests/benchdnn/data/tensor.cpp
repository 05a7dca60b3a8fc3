#include "data/tensor.hpp"

#include "support/numbers.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise::bench {
namespace {

template <typename T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <typename T>
void store(T value, std::byte* at) {
    std::memcpy(at, &value, sizeof value);
}

template <typename T>
void store_saturated(double value, std::byte* at) {
    using limits = std::numeric_limits<T>;
    if (std::isnan(value)) return store<T>(0, at);
    const double rounded = std::nearbyint(value);
    // 2^63 is not a T for s64 although the comparison below would let it through as a double.
    if (rounded >= static_cast<double>(limits::max())) return store<T>(limits::max(), at);
    if (rounded <= static_cast<double>(limits::lowest())) return store<T>(limits::lowest(), at);
    store<T>(static_cast<T>(rounded), at);
}

} // namespace

tensor::tensor(data_type type, dims extents)
    : dtype(type), shape(std::move(extents)),
      bytes(static_cast<std::size_t>(element_count(shape)) * info(type).size) {}

std::size_t tensor::count() const {
    return static_cast<std::size_t>(element_count(shape));
}

double load_number(data_type type, const std::byte* at) {
    switch (type) {
    case data_type::f32:
        return static_cast<double>(load<float>(at));
    case data_type::f64:
        return load<double>(at);
    case data_type::bf16:
        return test::decode(load<std::uint16_t>(at), test::bf16_format);
    case data_type::f16:
        return test::decode(load<std::uint16_t>(at), test::f16_format);
    case data_type::s32:
        return load<std::int32_t>(at);
    case data_type::s64:
        return static_cast<double>(load<std::int64_t>(at));
    case data_type::s8:
        return load<std::int8_t>(at);
    case data_type::u8:
        return load<std::uint8_t>(at);
    case data_type::boolean:
        return load<std::uint8_t>(at) != 0 ? 1.0 : 0.0;
    default:
        break;
    }
    throw input_error("the oracle does not read " + std::string(info(type).name));
}

void store_number(data_type type, double value, std::byte* at) {
    switch (type) {
    case data_type::f32:
        return store(static_cast<float>(value), at);
    case data_type::f64:
        return store(value, at);
    case data_type::bf16:
        return store(static_cast<std::uint16_t>(test::encode(value, test::bf16_format)), at);
    case data_type::f16:
        return store(static_cast<std::uint16_t>(test::encode(value, test::f16_format)), at);
    case data_type::s32:
        return store_saturated<std::int32_t>(value, at);
    case data_type::s64:
        return store_saturated<std::int64_t>(value, at);
    case data_type::s8:
        return store_saturated<std::int8_t>(value, at);
    case data_type::u8:
        return store_saturated<std::uint8_t>(value, at);
    case data_type::boolean:
        return store<std::uint8_t>(value != 0.0 ? 1 : 0, at);
    default:
        break;
    }
    throw input_error("the oracle does not write " + std::string(info(type).name));
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
    switch (type) {
    case data_type::f64:
        return std::ldexp(1.0, -53);
    case data_type::f32:
        return std::ldexp(1.0, -24);
    case data_type::f16:
        return std::ldexp(1.0, -11);
    case data_type::bf16:
        return std::ldexp(1.0, -8);
    default:
        return 0.0;
    }
}

} // namespace maskwise::bench
