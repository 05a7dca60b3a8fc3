#pragma once

#include "attention/gradients_plan.hpp"
#include "fusion/compiled_attention.hpp"
#include "fusion/gradients_chain.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>

namespace maskwise::fusion {

// Gradients, compiled for the shapes of their inputs. Results are those of query, key and value, in
// this order. Any number of threads may run them at once.
class compiled_gradients {
public:
    // `inputs` are in the order of gradients_chain::inputs(). Results without strides are dense.
    // Throws shape_error if shapes do not match, and argument_error for unsupported steps, types
    // and shapes.
    compiled_gradients(const gradients_chain& chain, std::span<const tensor_desc> inputs,
                       const std::array<tensor_desc, 3>& results);

    const dims& result(std::size_t number) const { return results()[number]->extents; }
    // On oneTBB's threads. Throws argument_error if a tensor has a null address, and bad_alloc.
    void run(std::span<const void* const> inputs, const std::array<void*, 3>& results) const;
    std::string describe() const { return to_string(attention()); }
    const tile_plan& attention() const { return *plan_->attention; }

private:
    std::array<const tensor_desc*, 3> results() const {
        const attention_gradients_desc& desc = plan_->desc;
        return {&desc.query_gradient, &desc.key_gradient, &desc.value_gradient};
    }

    numbers_reader numbers_;
    std::shared_ptr<const gradients_plan> plan_;
};

} // namespace maskwise::fusion
