#pragma once

// The reference with which oneDNN's driver compares a partition: its operators one by one in f32.
// Operators that sum or approximate run in oneDNN, one at a time.

#include "oracle/oracle.hpp"

namespace maskwise::bench::driver {

// The values of `wanted`, in f32 or an integer type. `part` is a partition of `whole`; `inputs`
// holds its inputs. Throws test::failed_call or std::runtime_error if oneDNN does not run an
// operator alone.
tensor_map reference_of(const graph& whole, const graph& part, const tensor_map& inputs,
                        const std::set<std::size_t>& wanted);

} // namespace maskwise::bench::driver
