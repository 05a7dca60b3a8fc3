#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace maskwise {

// The variable's value, or nullopt if unset. The view is valid until the environment changes.
// Set-user-id programs always get nullopt: a caller with fewer rights sets their environment.
std::optional<std::string_view> read_environment(const char* name) noexcept;

// nullopt for anything but a decimal number of 64 bits.
std::optional<std::int64_t> parse_number(std::string_view text) noexcept;

// A variable that holds a switch or a level: unset, empty or anything but a decimal number is 0.
std::int64_t read_environment_number(const char* name) noexcept;

} // namespace maskwise
