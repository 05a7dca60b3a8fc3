#pragma once

#include "onednn/library/abi.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace maskwise::onednn {

using attribute = std::variant<std::vector<float>, std::vector<std::int64_t>, bool, std::string>;

// Memory for the first elements of containers; later elements come from operator new. Must outlive
// the containers. Does not reuse freed memory. Not std::pmr, which needs the runtime of GCC 9.
class small_room {
public:
    void* allocate(std::size_t bytes) {
        const std::size_t padded = (bytes + alignment - 1) / alignment * alignment;
        if (padded < bytes || padded > bytes_.size() - used_) return ::operator new(bytes);
        return &bytes_[std::exchange(used_, used_ + padded)];
    }
    void deallocate(void* memory) noexcept {
        const auto* const first = static_cast<std::byte*>(memory);
        if (std::less()(first, bytes_.data()) || !std::less()(first, bytes_.data() + bytes_.size()))
            ::operator delete(memory);
    }

private:
    static constexpr std::size_t alignment = alignof(std::max_align_t);
    alignas(alignment) std::array<std::byte, 5 * sizeof(abi::logical_tensor)> bytes_;
    std::size_t used_ = 0;
};

template <class T>
struct room_allocator {
    using value_type = T;

    room_allocator(small_room* in) : room(in) {}
    template <class Other>
    room_allocator(const room_allocator<Other>& other) : room(other.room) {}
    T* allocate(std::size_t count) {
        if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(room->allocate(count * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t) noexcept { room->deallocate(memory); }
    friend bool operator==(const room_allocator&, const room_allocator&) = default;

    small_room* room;
};

// An operator as the client described it, with oneDNN's numbers for kinds and attributes. A record
// of usual size (three inputs, one output, a short name, an attribute) is a single allocation,
// because the plugin records every operator. Only Selects, and operators of graphs with a marker
// (see is_marker), are later translated to graph::op.
class op_record {
    template <class T>
    using list = std::vector<T, room_allocator<T>>;

    small_room room_;

public:
    op_record(std::size_t op_id, int op_kind, const char* op_name);
    op_record(const op_record& other);
    op_record& operator=(const op_record&) = delete;
    ~op_record() = default;

    // Each thread caches at most 63 freed records. malloc merges and splits freed blocks of this
    // size, which would cost more than the rest of recording.
    static void* operator new(std::size_t bytes);
    static void operator delete(void* memory) noexcept;

    std::size_t id;
    int kind;
    std::basic_string<char, std::char_traits<char>, room_allocator<char>> name{&room_};
    list<std::pair<int, attribute>> attributes{&room_}; // each name once
    list<abi::logical_tensor> inputs{&room_}, outputs{&room_};

    void set(int attribute_name, attribute value);
    const attribute* find(int attribute_name) const; // null if it is not set
    // Whether Maskwise may claim partitions of a graph because of this operator. True for a Select,
    // a SoftMax with statistics, and an Exp, which may compute weights from statistics.
    bool is_marker() const;

    // Set by add_op; the client's next change then applies to a copy. Stays set after the graph is
    // destroyed, because another graph's thread may still read the record. Atomic, because several
    // threads may add the operator to graphs at once.
    std::atomic<bool> is_shared = false;
};

// The client's settings of a graph. Graphs that Maskwise builds from parts of this graph have equal
// settings.
struct graph_settings {
    int engine_kind = abi::engine_cpu;
    int fpmath_mode = 0;
    bool fpmath_applies_to_int = false;
};

struct merged_group;
using op_list = std::vector<std::shared_ptr<const op_record>>;

// Facts for verbose lines about a partition.
struct partition_facts {
    std::size_t id = 0;
    std::string names; // of the operators, as oneDNN joins them
    graph_settings settings;
};

// A partition that the client gets. `index` refers to the real library's list.
struct listed_partition {
    std::size_t index;
    std::shared_ptr<const merged_group> group; // null if nothing is merged into it
};

struct graph_record {
    graph_settings settings;
    bool has_select = false, has_marker = false;
    op_list ops;                          // in order of add_op, ids may repeat
    std::vector<listed_partition> listed; // after the last filter; empty if nothing is merged
};

// Returns the first tensor with that id, or null.
const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors, std::size_t id);

// Returns the first operator with that id, or null. oneDNN ignores later ones.
std::shared_ptr<const op_record> find_op(const op_list& ops, std::size_t id);

// The operators' names, joined as in oneDNN's verbose lines.
std::string joined_names(const op_list& ops);

// Adds a copy of the client's operator to a graph of the real library, with the same id, attributes
// and tensors. Throws as require_success does.
void add_recorded(abi::graph graph, const op_record& record);

} // namespace maskwise::onednn
