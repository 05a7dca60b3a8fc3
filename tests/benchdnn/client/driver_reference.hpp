#pragma once

// The reference of oneDNN's driver: a partition's operators, computed one by one in f32. The oracle
// computes operators with exact or once-rounded results. oneDNN computes the others. A loop
// computes SoftMax with statistics, because oneDNN's driver has no primitive for it.

#include "oracle/oracle.hpp"

namespace maskwise::bench::driver {

// Returns the tensors in `wanted`, in f32 or an integer type. `part` is a partition of `whole`;
// `inputs_of_part` holds the partition's inputs. Throws test::failed_call or std::runtime_error if
// an operator has no reference.
tensor_map reference_of(const graph& whole, const graph& part, const tensor_map& inputs_of_part,
                        const std::set<std::size_t>& wanted);

} // namespace maskwise::bench::driver
