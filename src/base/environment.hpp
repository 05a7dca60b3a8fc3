#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace maskwise {

// The variable's value, or nullopt where it is unset. Always nullopt in set-user-id programs: their
// environment belongs to somebody with fewer rights.
std::optional<std::string> read_environment(const char* name);

// A variable that holds a switch or a level: unset, empty or anything but a decimal number is 0.
std::int64_t read_environment_number(const char* name);

} // namespace maskwise
