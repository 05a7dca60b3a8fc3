#pragma once

#include "graph/expression_group.hpp"
#include "plan/expression_plan.hpp"
#include "plan/select_plan.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace maskwise::graph {

// An operand that does not lie along dst's innermost loop is brought into dst's order before the
// loop runs; dst itself, where its elements are not neighbours, is written in order first and
// spread afterwards.
struct reordering {
    std::shared_ptr<const select_plan> plan; // a Select whose cond is true copies
    std::size_t operand = 0;                 // the expression's input; jit::dst_operand
    std::size_t offset_bytes = 0;            // in the scratch memory
};

// Memory of the last execution, kept for the next. Any thread.
class spare_memory {
public:
    ~spare_memory() { delete[] kept_.load(); }
    std::unique_ptr<std::byte[]> take(std::size_t bytes) {
        std::unique_ptr<std::byte[]> found(kept_.exchange(nullptr));
        return found ? std::move(found) : std::make_unique_for_overwrite<std::byte[]>(bytes);
    }
    void give_back(std::unique_ptr<std::byte[]> memory) {
        delete[] kept_.exchange(memory.release());
    }

private:
    std::atomic<std::byte*> kept_ = nullptr;
};

// A group compiled for the tensors of one compile call. Immutable; any number of threads may
// execute it at once.
struct compiled_expression {
    std::vector<std::size_t> input_positions; // by the expression's inputs, in the client's list
    std::size_t dst_position = 0;
    std::vector<logical_tensor> inputs;  // as given
    std::vector<logical_tensor> outputs; // as given, dst with shape and strides filled in
    std::shared_ptr<const expression_plan> plan;
    std::vector<reordering> reorderings; // mostly none
    std::size_t scratch_bytes = 0;
    std::shared_ptr<spare_memory> spare; // of so many bytes, for reorderings
    bool is_empty = false;               // dst has no elements: pointers may be null
};

// Compiles the group, its tensors matched by id (first occurrence), extras ignored. Shapes are
// inferred operator by operator. f32, bf16 and f16 of the graph may be given as another of these,
// one for one; values between the operators follow. Throws invalid_argument (missing id, unknown
// shape, unreadable layout, types otherwise than in the graph) and invalid_shape.
compiled_expression compile_group(const expression_group& group,
                                  std::span<const logical_tensor> inputs,
                                  std::span<const logical_tensor> outputs);

// The first of the client's inputs whose elements are dst's in type and place: dst may lie there,
// since the loop reads each element before it writes it. Host scalars have no place, and constants
// stay.
std::optional<std::size_t> input_under_dst(const compiled_expression& compiled);

// Executes on the expression's inputs in their order. Throws std::bad_alloc, and only where there
// are reorderings and no execution has left its memory.
void run(const compiled_expression& compiled, std::span<const void* const> inputs, void* dst);

} // namespace maskwise::graph
