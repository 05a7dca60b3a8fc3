#pragma once

#include "attention/gradients_plan.hpp"
#include "fusion/compiled_attention.hpp"
#include "fusion/gradients_chain.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>

namespace maskwise::fusion {

// Gradients, compiled for the shapes of their inputs. Results are the gradients of query, key and
// value, in this order. Any number of threads may call `run` at once.
class compiled_gradients {
public:
    // `inputs` are in the order of gradients_chain::inputs(). Results without strides are dense.
    // Throws shape_error if shapes do not match, and argument_error for unsupported steps, types
    // and shapes.
    compiled_gradients(const gradients_chain& chain, std::span<const tensor_desc> inputs,
                       const std::array<tensor_desc, 3>& results);

    const dims& result(std::size_t number) const { return results_.at(number).extents; }
    // Runs on oneTBB's threads. Throws argument_error if an address is null, and bad_alloc.
    void run(std::span<const void* const> inputs, const std::array<void*, 3>& results) const;
    std::string describe() const { return to_string(attention()); }
    const tile_plan& attention() const { return *plan_->attention; }

private:
    void describe_results(attention_gradients_desc& desc) const;
    void complete_results();
    void run_rounded(attention_gradients_operands addresses,
                     const attention_numbers& numbers) const;

    numbers_reader numbers_;
    std::array<tensor_desc, 3> results_;
    bool rounds_heads_; // rounds each head's key and value gradients before the sum over heads
    data_type head_type_;
    std::shared_ptr<const gradients_plan> plan_;
    mutable scratch_pool<scratch_memory> scratch_; // each head's gradients, if rounds_heads_
};

} // namespace maskwise::fusion
