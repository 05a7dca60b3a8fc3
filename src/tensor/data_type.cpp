#include "maskwise/maskwise.hpp"

namespace maskwise {
namespace {

// The public enumeration must have the types of data_types.inc, in the same order.
constexpr data_type listed[] = {
#define MASKWISE_DATA_TYPE(name, ...) data_type::name,
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};
constexpr bool is_in_order() {
    int number = 0;
    for (const data_type type : listed)
        if (static_cast<int>(type) != ++number) return false;
    return number == static_cast<int>(data_type::string);
}
static_assert(is_in_order());

} // namespace

inline namespace v1 {

std::size_t width_bytes(data_type type) {
    switch (type) {
#define MASKWISE_DATA_TYPE(name, width, ...)                                                       \
    case data_type::name:                                                                          \
        return width;
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
    case data_type::undef:
        break;
    }
    return 0;
}

std::string_view to_string(data_type type) {
    switch (type) {
#define MASKWISE_DATA_TYPE(name, width, ...)                                                       \
    case data_type::name:                                                                          \
        return #name;
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
    case data_type::undef:
        break;
    }
    return "undef";
}

} // namespace v1
} // namespace maskwise
