#include "maskwise/maskwise.hpp"

namespace maskwise {
inline namespace v1 {

std::size_t width_bytes(data_type type) {
    switch (type) {
#define MASKWISE_DATA_TYPE(name, width_bytes)                                                      \
    case data_type::name:                                                                          \
        return width_bytes;
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
    case data_type::undef:
        break;
    }
    return 0;
}

std::string_view to_string(data_type type) {
    switch (type) {
#define MASKWISE_DATA_TYPE(name, width_bytes)                                                      \
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
