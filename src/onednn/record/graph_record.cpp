#include "onednn/record/graph_record.hpp"

#include "onednn/library/real_library.hpp"

#include <algorithm>
#include <new>

namespace maskwise::onednn {
namespace {

struct cached_memory {
    static constexpr std::size_t max_blocks = 64;
    std::array<void*, max_blocks> blocks;
    std::size_t count = 0;

    ~cached_memory() {
        while (count > 0) ::operator delete(blocks[--count]);
        count = max_blocks; // a record that this thread frees later is not cached
    }
};

thread_local cached_memory cached;

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
    const bool has_block = cached.count > 0 && cached.count < cached_memory::max_blocks;
    return has_block ? cached.blocks[--cached.count] : ::operator new(bytes);
}

void op_record::operator delete(void* memory) noexcept {
    if (cached.count + 1 < cached_memory::max_blocks)
        cached.blocks[cached.count++] = memory;
    else
        ::operator delete(memory);
}

void op_record::set(int attribute_name, attribute value) {
    for (auto& [known_name, known_value] : attributes)
        if (known_name == attribute_name) {
            known_value = std::move(value);
            return;
        }
    attributes.emplace_back(attribute_name, std::move(value));
}

const attribute* op_record::find(int attribute_name) const {
    for (const auto& [known_name, known_value] : attributes)
        if (known_name == attribute_name) return &known_value;
    return nullptr;
}

bool op_record::is_marker() const {
    return kind == abi::op_kind_select || kind == abi::op_kind_exp ||
           (kind == abi::op_kind_soft_max && outputs.size() > 1);
}

const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors,
                                      std::size_t id) {
    const auto tensor = std::ranges::find(tensors, id, &abi::logical_tensor::id);
    return tensor == tensors.end() ? nullptr : &*tensor;
}

std::shared_ptr<const op_record> find_op(const op_list& ops, std::size_t id) {
    const auto op = std::ranges::find(ops, id, &op_record::id);
    return op == ops.end() ? nullptr : *op;
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
    op_handle copy;
    require_success(real_op_create(&copy.op, record.id, record.kind, record.name.c_str()),
                    "op_create");
    for (const auto& [name, value] : record.attributes) set_attribute(copy.op, name, value);
    for (const auto& input : record.inputs)
        require_success(real_op_add_input(copy.op, &input), "add_input");
    for (const auto& output : record.outputs)
        require_success(real_op_add_output(copy.op, &output), "add_output");
    require_success(real_add_op(graph, copy.op), "add_op");
}

} // namespace maskwise::onednn
