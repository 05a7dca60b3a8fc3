#pragma once

// The public error classes. The C ABI maps the class to a status (src/onednn) and shows the text
// only on demand.
#include "maskwise/maskwise.hpp"
