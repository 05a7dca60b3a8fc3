#pragma once

#include <stdexcept>
#include <string>

namespace maskwise {

// What the engine throws. The text names the offending values; the C ABI turns the class into a
// status (src/onednn) and shows the text only on demand.
class error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A type, count, attribute, layout or setting that can never be served.
class invalid_argument : public error {
    using error::error;
};

// Shapes that do not fit each other under the dialect's broadcast rule.
class invalid_shape : public error {
    using error::error;
};

} // namespace maskwise
