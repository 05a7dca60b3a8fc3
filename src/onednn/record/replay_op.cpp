#include "onednn/record/replay_op.hpp"

#include "onednn/library/real_library.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace maskwise::onednn {

namespace {

struct op_handle {
    abi::op op = nullptr;
    ~op_handle() { call_real(&real_library::op_destroy, op); }
};

struct attribute_setter {
    abi::op op;
    int name;

    void operator()(const std::vector<float>& value) const {
        require_success(
            call_real(&real_library::op_set_attr_f32, op, name, value.data(), value.size()),
            "set_attr_f32");
    }
    void operator()(const std::vector<std::int64_t>& value) const {
        require_success(
            call_real(&real_library::op_set_attr_s64, op, name, value.data(), value.size()),
            "set_attr_s64");
    }
    void operator()(bool value) const {
        const std::uint8_t byte = value ? 1 : 0;
        require_success(call_real(&real_library::op_set_attr_bool, op, name, &byte, std::size_t{1}),
                        "set_attr_bool");
    }
    void operator()(const std::string& value) const {
        require_success(
            call_real(&real_library::op_set_attr_str, op, name, value.c_str(), value.size()),
            "set_attr_str");
    }
};

} // namespace

void add_recorded(abi::graph graph, const op_record& record) {
    op_handle made;
    require_success(
        call_real(&real_library::op_create, &made.op, record.id, record.kind, record.name.c_str()),
        "op_create");
    for (const auto& [name, value] : record.attributes)
        std::visit(attribute_setter{made.op, name}, value);
    for (const auto& input : record.inputs)
        require_success(call_real(&real_library::op_add_input, made.op, &input), "add_input");
    for (const auto& output : record.outputs)
        require_success(call_real(&real_library::op_add_output, made.op, &output), "add_output");
    require_success(call_real(&real_library::add_op, graph, made.op), "add_op");
}

} // namespace maskwise::onednn
