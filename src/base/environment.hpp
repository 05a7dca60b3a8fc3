#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace maskwise {

// Returns the variable's value, or nullopt if unset. The view is valid until the environment
// changes. Set-user-id programs always get nullopt, because a user with fewer rights may have set
// their environment.
std::optional<std::string_view> read_environment(const char* name) noexcept;

// Parses a decimal int64; nullopt unless the whole text is one number.
std::optional<std::int64_t> parse_number(std::string_view text) noexcept;

// Returns the value of a variable that is a switch or a level. 0 if the variable is unset, empty or
// not a decimal int64.
std::int64_t read_environment_number(const char* name) noexcept;

} // namespace maskwise
