#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace maskwise::test {

// The text of the exception, or "" if call() throws nothing.
template <class Error>
std::string refusal(const auto& call) {
    try {
        call();
    } catch (const Error& thrown) {
        return thrown.what();
    }
    return "";
}

inline testing::AssertionResult has(const std::string& text,
                                    const std::vector<std::string>& parts) {
    for (const std::string& part : parts)
        if (text.find(part) == std::string::npos)
            return testing::AssertionFailure() << "no '" << part << "' in: '" << text << "'";
    return testing::AssertionSuccess();
}

} // namespace maskwise::test
