#pragma once

#include <string>

namespace maskwise {

// The text of the refusal, or "" where there is none.
template <class Error>
std::string refusal(const auto& call) {
    try {
        call();
    } catch (const Error& thrown) {
        return thrown.what();
    }
    return "";
}

} // namespace maskwise
