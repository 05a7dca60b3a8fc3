#pragma once

// Chooses the targets that Highway compiles, to match supported_isas(). Include this header before
// hwy/foreach_target.h. SCALAR replaces EMU128, because SCALAR needs no vector extension of the
// compiler.
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE2_128 | HWY_SVE_256)
