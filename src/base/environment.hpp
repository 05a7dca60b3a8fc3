#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace maskwise {

// The variable's value, or nullopt where it is unset; valid until somebody changes the environment.
// Always nullopt in set-user-id programs: theirs belongs to somebody with fewer rights.
std::optional<std::string_view> read_environment(const char* name) noexcept;

// nullopt for anything but a decimal number of 64 bits.
std::optional<std::int64_t> parse_number(std::string_view text) noexcept;

// A variable that holds a switch or a level: unset, empty or anything but a decimal number is 0.
std::int64_t read_environment_number(const char* name) noexcept;

} // namespace maskwise
