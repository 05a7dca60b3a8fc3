#pragma once

// The public error classes. The C ABI (src/onednn) maps the class to a status, and prints the text
// in verbose lines only.
#include "maskwise/maskwise.hpp"
