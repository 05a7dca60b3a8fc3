#pragma once

// What Highway compiles, for files that include hwy/foreach_target.h after this one: the
// instruction sets that supported_isas() names. EMU128 is given up for SCALAR, which needs no
// vector extension of the compiler.
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE2_128 | HWY_SVE_256)
