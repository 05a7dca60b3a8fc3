#pragma once

// The reference that oneDNN's driver compares a partition with: the partition's operators, computed
// one by one in f32. oneDNN computes the operators that sum or approximate, except SoftMax with
// statistics. The oracle computes operators with exact or once-rounded results.

#include "oracle/oracle.hpp"

namespace maskwise::bench::driver {

// Values of the tensors in `wanted`, in f32 or an integer type. `part` is a partition of `whole`;
// `inputs_of_part` holds the partition's inputs. Throws test::failed_call or std::runtime_error if
// an operator has no reference.
tensor_map reference_of(const graph& whole, const graph& part, const tensor_map& inputs_of_part,
                        const std::set<std::size_t>& wanted);

} // namespace maskwise::bench::driver
