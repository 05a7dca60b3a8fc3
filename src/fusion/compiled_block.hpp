#pragma once

#include "fusion/block.hpp"

#include "attention/tile_plan.hpp"
#include "plan/recent_plans.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Scratch memory of blocks that mostly run one after another.
class block_scratch : public scratch_pool<scratch_memory> {
public:
    block_scratch() : scratch_pool(most_cached) {}
};

// Outputs without strides are dense, of the extents that follow.
struct block_outputs {
    tensor_desc dst;
    tensor_desc statistics = {}; // where the block has them
    attention_order order = attention_order::tiles;
};

struct block_addresses {
    std::span<const void* const> inputs; // in the order of block::inputs()
    void* dst;
    void* statistics = nullptr;
};

// A block for inputs of certain shapes. Any number of threads may run it at once.
class compiled_block {
public:
    virtual ~compiled_block() = default;

    // Extents of the outputs.
    virtual const dims& dst() const = 0;
    virtual dims statistics() const = 0;
    // The threads are the loop's, or oneTBB's where it is null; attention without a pool keeps
    // memory of its own. Throws argument_error where an address of a tensor with elements is
    // null, bad_alloc, and what the loop throws.
    virtual void run(const block_addresses& at, const parallel_loop* loop = nullptr,
                     block_scratch* memory = nullptr) const = 0;
    // For verbose lines: its plan.
    virtual std::string describe() const = 0;
    // Null where rows are all of it.
    virtual const tile_plan* attention() const { return nullptr; }
};

inline std::string to_string(const compiled_block& of) {
    return of.describe();
}

// `inputs` are described in the order of block::inputs(), dense where without strides. Throws
// shape_error where shapes do not fit each other, and argument_error for steps and types that
// cannot be run.
std::shared_ptr<const compiled_block> compile(const block& of, std::span<const tensor_desc> inputs,
                                              const block_outputs& outputs);

// All that differs between the calls of a block: what is known of each operand but its type.
using operand_shapes = std::vector<std::int64_t>;
void append(operand_shapes& to, const tensor_desc& desc);

using recent_blocks = recent_plans<operand_shapes, std::shared_ptr<const compiled_block>>;

} // namespace maskwise::fusion
