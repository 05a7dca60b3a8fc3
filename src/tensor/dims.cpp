#include "maskwise/maskwise.hpp"

namespace maskwise {

std::string to_string(const dims& values) {
    std::string text = "{";
    for (const std::int64_t value : values) {
        if (text.size() > 1) text += ',';
        text += std::to_string(value);
    }
    return text + '}';
}

} // namespace maskwise
