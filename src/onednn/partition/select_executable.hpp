#pragma once

#include "graph/compiled_select.hpp"
#include "onednn/partition/executable.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace maskwise::onednn {

struct select_pointers {
    const void* cond;
    const void* src_0;
    const void* src_1;
    void* dst;
};

// Runs a compiled Select. Null pointers are invalid_arguments unless dst is empty.
abi::status execute_select(const graph::compiled_select& select, const select_pointers& pointers);

// A Select that is a partition by itself.
class select_executable final : public executable {
public:
    // `inputs` and `outputs` are the call's. Throws what graph::compile_select throws.
    select_executable(const graph::op& select, const compile_call& call,
                      std::span<const graph::logical_tensor> inputs,
                      std::span<const graph::logical_tensor> outputs);

    bool makes(std::size_t id) const override;
    abi::status execute(const execute_call& call) const override;
    const char* kind() const override { return "select"; }
    std::string describe() const override;

private:
    graph::compiled_select select_;
};

} // namespace maskwise::onednn
