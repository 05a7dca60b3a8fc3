#pragma once

// The errors are the public ones. The C ABI turns the class into a status (src/onednn) and shows
// the text only on demand.
#include "maskwise/maskwise.hpp"
