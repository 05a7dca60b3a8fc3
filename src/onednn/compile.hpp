#pragma once

#include "onednn/abi.hpp"
#include "onednn/records.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace maskwise::onednn {

// The arguments of dnnl_graph_partition_compile.
struct compile_call {
    abi::partition partition;
    abi::compiled_partition compiled_partition;
    std::size_t in_num;
    const abi::logical_tensor** inputs;
    std::size_t out_num;
    const abi::logical_tensor** outputs;
    abi::engine engine;
};

// Whether an argument is null that must not be; elements of the lists are not looked at.
bool has_nulls(const compile_call& call);
std::vector<abi::logical_tensor> copy_tensors(std::size_t count,
                                              const abi::logical_tensor** tensors);
// As the real library takes lists; valid as long as `tensors` stays as it is.
std::vector<const abi::logical_tensor*>
pointers_to(const std::vector<abi::logical_tensor>& tensors);

// One verbose line, where they are wanted, for a compile that Maskwise does not do.
void report_refusal(const partition_record& partition, abi::status status,
                    const std::string& reason);

// Compiles a claimed partition and records the result for its handle. Types that the schema does
// not know are left to the real library where that supports the partition: it computes some
// mixtures. Any thread.
abi::status compile_claimed(const std::shared_ptr<const partition_record>& partition,
                            const compile_call& call);

// Compiles by the real library: what Maskwise had compiled into the handle before is forgotten,
// once the real compile has succeeded. What the real library throws passes through.
abi::status compile_by_real(const compile_call& call);

} // namespace maskwise::onednn
