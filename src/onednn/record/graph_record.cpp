#include "onednn/record/graph_record.hpp"

#include "onednn/library/real_library.hpp"

#include <algorithm>
#include <new>

namespace maskwise::onednn {
namespace {

struct kept_memory {
    static constexpr std::size_t most = 64;
    std::array<void*, most> blocks;
    std::size_t count = 0;

    ~kept_memory() {
        while (count > 0) ::operator delete(blocks[--count]);
        count = most; // a record freed later by this thread goes straight back
    }
};

thread_local kept_memory kept;

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
    : id(op_id), kind(op_kind), name(op_name, &room_) {
    inputs.reserve(3);
    outputs.reserve(1);
}

op_record::op_record(const op_record& other)
    : id(other.id), kind(other.kind), name(other.name, &room_),
      attributes(other.attributes, &room_), inputs(other.inputs, &room_),
      outputs(other.outputs, &room_) {}

void* op_record::operator new(std::size_t bytes) {
    const bool is_one_kept = kept.count > 0 && kept.count < kept_memory::most;
    return is_one_kept ? kept.blocks[--kept.count] : ::operator new(bytes);
}

void op_record::operator delete(void* memory) noexcept {
    if (kept.count + 1 < kept_memory::most)
        kept.blocks[kept.count++] = memory;
    else
        ::operator delete(memory);
}

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

const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors,
                                      std::size_t id) {
    const auto found = std::ranges::find(tensors, id, &abi::logical_tensor::id);
    return found == tensors.end() ? nullptr : &*found;
}

std::shared_ptr<const op_record> find_op(const op_list& ops, std::size_t id) {
    const auto found = std::ranges::find(ops, id, &op_record::id);
    return found == ops.end() ? nullptr : *found;
}

std::string joined_names(const op_list& ops) {
    std::string names;
    for (const auto& op : ops) {
        if (!names.empty()) names += ';';
        names += op->name;
    }
    return names;
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
