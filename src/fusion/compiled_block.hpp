#pragma once

#include "fusion/block.hpp"

#include "attention/tile_plan.hpp"
#include "base/recent_plans.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Scratch shared by blocks that mostly run one after another.
class block_scratch : public scratch_pool<scratch_memory> {
public:
    block_scratch() : scratch_pool(most_cached) {}
};

// Outputs without strides are dense, with the inferred extents.
struct block_outputs {
    tensor_desc dst;
    tensor_desc statistics = {}; // of type undef if the block has none
    attention_order order = attention_order::tiles;
};

struct block_addresses {
    std::span<const void* const> inputs; // in the order of block::inputs()
    void* dst;
    void* statistics = nullptr;
};

// A block, compiled for the shapes of its inputs. Any number of threads may call `run` at once.
class compiled_block {
public:
    virtual ~compiled_block() = default;

    // Extents of the outputs.
    virtual const dims& dst() const = 0;
    virtual dims statistics() const = 0;
    // Runs on the loop's threads, or on oneTBB's if `loop` is null. Without `memory`, attention
    // uses its plan's scratch. Throws argument_error if a tensor with elements has a null address.
    // Throws bad_alloc, and exceptions of the loop.
    virtual void run(const block_addresses& addresses, const parallel_loop* loop = nullptr,
                     block_scratch* memory = nullptr) const = 0;
    // The plan, for verbose lines.
    virtual std::string describe() const = 0;
    // The attention's plan; null for a block without attention.
    virtual const tile_plan* attention() const { return nullptr; }
};

inline std::string to_string(const compiled_block& compiled) {
    return compiled.describe();
}

// `inputs` are in the order of block::inputs(). An input without strides is dense. Throws
// shape_error if shapes do not match, and argument_error for unsupported steps and types.
std::shared_ptr<const compiled_block>
compile(const block& matched, std::span<const tensor_desc> inputs, const block_outputs& outputs);

// Ranks, extents and strides of all operands: everything that can differ between calls of a block.
using operand_shapes = std::vector<std::int64_t>;
void append(operand_shapes& shapes, const tensor_desc& desc);

using recent_blocks = recent_plans<operand_shapes, std::shared_ptr<const compiled_block>>;

} // namespace maskwise::fusion
