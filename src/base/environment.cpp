#include "base/environment.hpp"

#include <charconv>
#include <cstdlib>

namespace maskwise {

std::optional<std::string_view> read_environment(const char* name) noexcept {
    const char* value = secure_getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string_view(value);
}

std::optional<std::int64_t> parse_number(std::string_view text) noexcept {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, number);
    if (failure != std::errc{} || stop != end) return std::nullopt;
    return number;
}

std::int64_t read_environment_number(const char* name) noexcept {
    return parse_number(read_environment(name).value_or("")).value_or(0);
}

} // namespace maskwise
