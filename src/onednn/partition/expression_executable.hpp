#pragma once

#include "graph/compiled_expression.hpp"
#include "onednn/partition/executable.hpp"

#include <cstddef>
#include <string>

namespace maskwise::onednn {

// A merged group that one loop over elements runs.
class expression_executable final : public executable {
public:
    // Throws what graph::compile_group throws.
    expression_executable(const graph::expression_group& group, const compile_call& call);

    bool makes(std::size_t id) const override;
    abi::status execute(const execute_call& call) const override;
    const char* kind() const override { return "expression"; }
    std::string describe() const override;

private:
    graph::compiled_expression expression_;
};

} // namespace maskwise::onednn
