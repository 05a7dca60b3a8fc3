#include "onednn/record/op_record.hpp"

#include "onednn/library/real_library.hpp"

#include <algorithm>
#include <new>

namespace maskwise::onednn {
namespace {

// Memory for records. Every operator of every graph gets one for a moment, and through malloc that
// costs more than all the rest: freed blocks of this size are merged and split again. So a thread
// keeps the blocks that it frees for its next records, up to a bound.
constexpr std::size_t block_bytes = 1536;
constexpr std::size_t reference_count_bytes = 64; // at most, of allocate_shared
static_assert(sizeof(op_record) + reference_count_bytes <= block_bytes);

struct kept_blocks {
    static constexpr std::size_t most = 64;
    std::array<void*, most> blocks;
    std::size_t count = 0;

    ~kept_blocks() {
        while (count > 0) ::operator delete(blocks[--count]);
        count = most; // a record freed later by this thread goes straight back
    }
};

thread_local kept_blocks kept;

template <typename T>
struct record_allocator {
    using value_type = T;

    record_allocator() = default;
    template <typename U>
    record_allocator(const record_allocator<U>&) noexcept {}

    T* allocate(std::size_t) {
        static_assert(sizeof(T) <= block_bytes);
        const bool is_one_kept = kept.count > 0 && kept.count < kept_blocks::most;
        return static_cast<T*>(is_one_kept ? kept.blocks[--kept.count]
                                           : ::operator new(block_bytes));
    }
    void deallocate(T* block, std::size_t) noexcept {
        if (kept.count + 1 < kept_blocks::most)
            kept.blocks[kept.count++] = block;
        else
            ::operator delete(block);
    }
    friend bool operator==(const record_allocator&, const record_allocator&) { return true; }
};

template <typename... Arguments>
std::shared_ptr<op_record> make_record(const Arguments&... arguments) {
    return std::allocate_shared<op_record>(record_allocator<op_record>(), arguments...);
}

struct op_handle {
    abi::op op = nullptr;
    ~op_handle() { real_op_destroy(op); }
};

void set_attribute(abi::op op, int name, const attribute& value) {
    if (const auto* floats = std::get_if<std::vector<float>>(&value))
        return require_success(real_op_set_attr_f32(op, name, floats->data(), floats->size()),
                               "set_attr_f32");
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value))
        return require_success(real_op_set_attr_s64(op, name, integers->data(), integers->size()),
                               "set_attr_s64");
    if (const auto* text = std::get_if<std::string>(&value))
        return require_success(real_op_set_attr_str(op, name, text->c_str(), text->size()),
                               "set_attr_str");
    const std::uint8_t byte = std::get<bool>(value) ? 1 : 0;
    require_success(real_op_set_attr_bool(op, name, &byte, 1), "set_attr_bool");
}

} // namespace

op_record::op_record(std::size_t op_id, int op_kind, const char* op_name)
    : id(op_id), kind(op_kind), name(op_name, &pool_) {
    inputs.reserve(3);
    outputs.reserve(1);
}

op_record::op_record(const op_record& other)
    : id(other.id), kind(other.kind), name(other.name, &pool_),
      attributes(other.attributes, &pool_), inputs(other.inputs, &pool_),
      outputs(other.outputs, &pool_) {}

void op_record::set(int attribute_name, attribute value) {
    for (auto& [name_held, value_held] : attributes)
        if (name_held == attribute_name) {
            value_held = std::move(value);
            return;
        }
    attributes.emplace_back(attribute_name, std::move(value));
}

const attribute* op_record::find(int attribute_name) const {
    for (const auto& [name_held, value_held] : attributes)
        if (name_held == attribute_name) return &value_held;
    return nullptr;
}

op_builder::op_builder(std::size_t id, int kind, const char* name)
    : current_(make_record(id, kind, name)) {}

std::shared_ptr<const op_record> op_builder::share() const noexcept {
    is_shared_.store(true, std::memory_order_relaxed);
    return current_;
}

op_record& op_builder::writable() {
    if (is_shared_.load(std::memory_order_relaxed)) {
        current_ = make_record(*current_);
        is_shared_.store(false, std::memory_order_relaxed);
    }
    return *current_;
}

void add_recorded(abi::graph graph, const op_record& record) {
    op_handle made;
    require_success(real_op_create(&made.op, record.id, record.kind, record.name.c_str()),
                    "op_create");
    for (const auto& [name, value] : record.attributes) set_attribute(made.op, name, value);
    for (const auto& input : record.inputs)
        require_success(real_op_add_input(made.op, &input), "add_input");
    for (const auto& output : record.outputs)
        require_success(real_op_add_output(made.op, &output), "add_output");
    require_success(real_add_op(graph, made.op), "add_op");
}

} // namespace maskwise::onednn
