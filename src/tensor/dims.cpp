#include "maskwise/maskwise.hpp"

namespace maskwise {
inline namespace v1 {

std::string to_string(const dims& values) {
    std::string text = "{";
    for (const std::int64_t value : values) {
        if (text.size() > 1) text += ',';
        text += std::to_string(value);
    }
    return text + '}';
}

} // namespace v1
} // namespace maskwise
