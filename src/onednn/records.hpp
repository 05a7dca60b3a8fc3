#pragma once

#include "graph/compiled_expression.hpp"
#include "graph/compiled_select.hpp"
#include "graph/op.hpp"
#include "onednn/abi.hpp"
#include "onednn/handle_map.hpp"
#include "onednn/record_pool.hpp"
#include "onednn/side_table.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace maskwise::onednn {

using attribute = std::variant<std::vector<float>, std::vector<std::int64_t>, bool, std::string>;

// An operator as the client described it, in oneDNN's own numbers. Translated only for graphs that
// hold a Select. Every operator of every graph passes here, so one of usual size (three inputs, one
// output, a short name) is a single allocation.
class op_record {
    static constexpr std::size_t room_bytes = 4 * sizeof(abi::logical_tensor);
    alignas(std::max_align_t) std::array<std::byte, room_bytes> room_;
    std::pmr::monotonic_buffer_resource pool_{room_.data(), room_.size()};

public:
    op_record(std::size_t op_id, int op_kind, const char* op_name);
    op_record(const op_record& other);
    op_record& operator=(const op_record&) = delete;
    ~op_record() = default;

    std::size_t id;
    int kind;
    std::pmr::string name{&pool_};
    std::pmr::vector<std::pair<int, attribute>> attributes{&pool_}; // each name once
    std::pmr::vector<abi::logical_tensor> inputs{&pool_};
    std::pmr::vector<abi::logical_tensor> outputs{&pool_};

    void set(int attribute_name, attribute value);
    const attribute* find(int attribute_name) const; // null where it is not set
};

// The operator while the client still holds and may change it. add_op shares the current state; the
// next change copies it first. Whether the graph still has it does not matter: another thread may
// just be reading it there for the last time.
class op_builder {
public:
    explicit op_builder(std::shared_ptr<op_record> made) : current_(std::move(made)) {}

    const op_record& current() const { return *current_; }

    std::shared_ptr<const op_record> share() const noexcept {
        is_shared_.store(true, std::memory_order_relaxed);
        return current_;
    }

    op_record& writable() {
        if (is_shared_.load(std::memory_order_relaxed)) {
            current_ = std::allocate_shared<op_record>(record_allocator<op_record>(), *current_);
            is_shared_.store(false, std::memory_order_relaxed);
        }
        return *current_;
    }

private:
    std::shared_ptr<op_record> current_;
    mutable std::atomic<bool> is_shared_ = false; // threads may add it to their graphs at once
};

struct merged_record;

struct graph_record {
    int engine_kind = 0;
    int fpmath_mode = 0;
    bool fpmath_applies_to_int = false;
    bool has_select = false;
    std::vector<std::shared_ptr<const op_record>> ops;        // in order of add_op, ids may repeat
    std::vector<std::shared_ptr<const merged_record>> merged; // by the last filter
};

// The first tensor of that id, or null.
const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors, std::size_t id);

// The first operator of that id, which is the one that oneDNN took; null where there is none.
std::shared_ptr<const op_record> find_op(const graph_record& graph, std::size_t id);

// Names as oneDNN joins them in the lines of a partition.
std::string joined_names(std::span<const std::shared_ptr<const op_record>> ops);

// A partition that is Maskwise's: a Select alone, or what was merged around one.
struct partition_record {
    std::size_t id = 0;
    bool real_supports = false; // oneDNN could run it, too
    int fpmath_mode = 0;
    bool fpmath_applies_to_int = false;
    graph::op select;
    std::shared_ptr<const merged_record> merged; // then select has no more than a name
};

class composite;
struct region_record;

// What execute, query and verbose need of a compiled partition that is Maskwise's.
struct compiled_record {
    std::shared_ptr<const partition_record> partition;
    graph::compiled_select select;
    std::shared_ptr<composite> whole; // instead of a Select alone: a larger partition
    std::shared_ptr<const graph::compiled_expression> expression; // or a merged one
    std::vector<abi::logical_tensor> inputs;                      // as given to compile
    std::vector<abi::logical_tensor> outputs; // dst with shape and strides filled in
    std::optional<abi::inplace_pair> inplace; // dst may lie where this input lies
};

// A host scalar's value is unreachable in the real library once the tensor exists.
struct tensor_record {
    abi::logical_tensor logical_tensor{};
    std::optional<std::array<std::byte, 8>> scalar;
};

struct side_tables {
    handle_map<op_builder> ops;
    handle_map<graph_record> graphs;
    side_table<const partition_record> partitions;
    side_table<const region_record> regions; // larger partitions that may become composites
    side_table<const tensor_record> tensors;
    handle_map<compiled_record> compiled;
};

// Never destroyed: exit handlers of the client still destroy handles.
side_tables& tables();

void forget_partition(abi::partition partition);

} // namespace maskwise::onednn
