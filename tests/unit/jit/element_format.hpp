#pragma once

#include "maskwise/maskwise.hpp"

#include <cstdint>

namespace maskwise::test {

// Elements of the float types to numbers and back, by their fields in double precision: nothing of
// it is shared with src/.

// The number that an element's bits stand for.
double decode_element(std::uint32_t bits, data_type type);

// The bits of `value` rounded to nearest even; i8 and u8 hold whole numbers of their range.
std::uint32_t encode_element(double value, data_type type);

// decode(encode(value)).
double round_to(double value, data_type type);

// The next representable number, `steps` of them further up (or down where negative).
double step_f32(double value, int steps);

} // namespace maskwise::test
