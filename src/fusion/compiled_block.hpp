#pragma once

#include "fusion/block.hpp"

#include "attention/attention_plan.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace maskwise::fusion {

// Scratch memory of blocks that mostly run one after another: as many pieces are kept as were in
// use at once. Any thread.
class scratch_pool {
public:
    // Calls run(std::unique_ptr<attention_scratch>&), which may replace it.
    template <class Run>
    void lend(const Run& run) {
        std::unique_ptr<attention_scratch> piece = take();
        run(piece);
        const std::lock_guard lock(mutex_);
        kept_.push_back(std::move(piece));
    }

private:
    std::unique_ptr<attention_scratch> take();

    std::mutex mutex_;
    std::vector<std::unique_ptr<attention_scratch>> kept_;
};

// A block for inputs of certain shapes. Any number of threads may run it at once.
class compiled_block {
public:
    virtual ~compiled_block() = default;

    // Extents of the result.
    virtual const dims& dst() const = 0;
    // Addresses are in the order of block::inputs(). The threads are the loop's, or oneTBB's where
    // it is null. Throws bad_alloc, and what the loop throws.
    virtual void run(std::span<const void* const> inputs, void* dst, const parallel_loop* loop,
                     scratch_pool& memory) const = 0;
};

// `inputs` are described in the order of block::inputs(), dense where without strides. `dst`
// without strides is dense, of the extents that follow. The block has a SoftMax, and neither
// statistics nor a causal boundary. Throws invalid_shape where shapes do not fit each other, and
// invalid_argument for steps and types that cannot be run.
std::shared_ptr<const compiled_block> compile(const block& of, std::span<const tensor_desc> inputs,
                                              const tensor_desc& dst);

// All that differs between the calls of a block: what is known of each operand but its type.
using operand_shapes = std::vector<std::int64_t>;
void append(operand_shapes& to, const tensor_desc& desc);

// The compiled blocks of the last shapes: generated text, for one, has another length each time.
// Any thread.
class recent_blocks {
public:
    using pointer = std::shared_ptr<const compiled_block>;

    template <class Make>
    pointer find(const operand_shapes& of, const Make& make) {
        if (pointer known = find_known(of)) return known;
        pointer made = make();
        keep(of, made);
        return made;
    }

private:
    pointer find_known(const operand_shapes& of);
    void keep(const operand_shapes& of, const pointer& made);

    std::mutex mutex_;
    std::deque<std::pair<operand_shapes, pointer>> kept_;
};

} // namespace maskwise::fusion
