#include "base/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace maskwise {

std::optional<std::string_view> read_environment(const char* name) noexcept {
    const char* value = secure_getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string_view(value);
}

std::int64_t read_environment_number(const char* name) noexcept {
    const char* value = secure_getenv(name);
    if (value == nullptr) return 0;
    std::int64_t number = 0;
    const char* end = value + std::strlen(value);
    const auto [stop, failure] = std::from_chars(value, end, number);
    return failure == std::errc{} && stop == end ? number : 0;
}

} // namespace maskwise
