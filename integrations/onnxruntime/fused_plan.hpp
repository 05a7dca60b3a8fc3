#pragma once

#include "fusion.hpp"
#include "session_facts.hpp"

#include <memory>
#include <span>
#include <vector>

namespace maskwise::ort {

// A fusion for inputs of certain shapes. Any number of threads may run it at once.
class fused_plan {
public:
    virtual ~fused_plan() = default;

    // Extents of the output.
    virtual const dims& shape() const = 0;
    // `inputs` are the fusion's, dense; the output is dense. Throws bad_alloc, and what the loop
    // throws.
    virtual void run(std::span<const void* const> inputs, void* output, const parallel_loop& loop,
                     session_facts& session) const = 0;
};

// `inputs` describe the fusion's, without strides. Throw invalid_shape where these shapes do not
// fit each other.
std::shared_ptr<const fused_plan> make_fused_rows(const fusion& of,
                                                  std::span<const tensor_desc> inputs);
std::shared_ptr<const fused_plan> make_fused_attention(const fusion& of,
                                                       std::span<const tensor_desc> inputs);

} // namespace maskwise::ort
