#pragma once

// What oneDNN's driver compares a partition with: its operators one by one in f32, those that sum
// or approximate by oneDNN itself, each alone.

#include "oracle/oracle.hpp"

namespace maskwise::bench::driver {

// Values of `wanted`, in f32 or an integer type. `part` is a partition of `whole`, `given` holds
// its inputs. Throws test::failed_call or std::runtime_error when oneDNN does not run an operator
// alone.
tensor_map reference_of(const graph& whole, const graph& part, const tensor_map& given,
                        const std::set<std::size_t>& wanted);

} // namespace maskwise::bench::driver
