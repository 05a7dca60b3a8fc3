// In front of every file: OpenVINO's macros use string streams, of which the libstdc++ of GCC 12 has
// more than that of GCC 8. So those of the headers are compiled in.
#pragma once

#include <cstddef>

#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE 0
