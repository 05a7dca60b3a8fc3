#pragma once

#include "onednn/library/abi.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
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
    static constexpr std::size_t room_bytes = 5 * sizeof(abi::logical_tensor); // one for attributes
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
    op_builder(std::size_t id, int kind, const char* name);

    const op_record& current() const { return *current_; }
    std::shared_ptr<const op_record> share() const noexcept;
    op_record& writable();

private:
    std::shared_ptr<op_record> current_;
    mutable std::atomic<bool> is_shared_ = false; // threads may add it to their graphs at once
};

// Makes the operator once more, in a graph of the real library's, with the id, attributes and
// tensors that the client gave it. Throws invalid_argument where that library refuses.
void add_recorded(abi::graph graph, const op_record& record);

} // namespace maskwise::onednn
