// Records operators while the client builds them, because the real library has no getters for
// inputs and attributes. Each function first changes the real object. If the change fails, the
// function returns the real library's status.

#include "onednn/library/active.hpp"
#include "onednn/library/forward.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/graph_record.hpp"
#include "onednn/record/tables.hpp"

namespace maskwise::onednn {
namespace {

// Applies `change` to the operator's record, if oneDNN accepted the change. If the change cannot be
// recorded, drops the record, so that no claim uses the record.
template <typename Change>
abi::status record_change(abi::status status, abi::op handle, Change&& change) {
    if (!to_record(status)) return status;
    const abi::status recorded = guarded([&] {
        auto* const record = tables().ops.find(handle);
        if (record == nullptr) return;
        if ((*record)->is_shared.load(std::memory_order_relaxed))
            *record = std::shared_ptr<op_record>(new op_record(**record));
        change(**record);
    });
    if (recorded != abi::success) tables().ops.erase(handle);
    return recorded;
}

template <typename Value>
abi::status record_attribute(abi::status status, abi::op handle, int name, Value&& make_value) {
    return record_change(status, handle,
                         [&](op_record& record) { record.set(name, make_value()); });
}

} // namespace

abi::status dnnl_graph_op_create(abi::op* op, std::size_t id, int kind, const char* verbose_name) {
    const auto status = real_op_create(op, id, kind, verbose_name);
    return record_created(status, op, real_op_destroy, [&] {
        auto record = std::make_unique<op_record>(id, kind, verbose_name);
        tables().ops.insert(*op, std::make_unique<std::shared_ptr<op_record>>(std::move(record)));
    });
}

abi::status dnnl_graph_op_destroy(abi::op op) {
    tables().ops.erase(op);
    return real_op_destroy(op);
}

abi::status dnnl_graph_op_add_input(abi::op op, const abi::logical_tensor* input) {
    return record_change(real_op_add_input(op, input), op,
                         [&](op_record& record) { record.inputs.push_back(*input); });
}

abi::status dnnl_graph_op_add_output(abi::op op, const abi::logical_tensor* output) {
    return record_change(real_op_add_output(op, output), op,
                         [&](op_record& record) { record.outputs.push_back(*output); });
}

abi::status dnnl_graph_op_set_attr_f32(abi::op op, int name, const float* value,
                                       std::size_t value_len) {
    return record_attribute(real_op_set_attr_f32(op, name, value, value_len), op, name,
                            [&] { return std::vector<float>(value, value + value_len); });
}

abi::status dnnl_graph_op_set_attr_s64(abi::op op, int name, const std::int64_t* value,
                                       std::size_t value_len) {
    return record_attribute(real_op_set_attr_s64(op, name, value, value_len), op, name,
                            [&] { return std::vector<std::int64_t>(value, value + value_len); });
}

abi::status dnnl_graph_op_set_attr_bool(abi::op op, int name, const std::uint8_t* value,
                                        std::size_t value_len) {
    return record_attribute(real_op_set_attr_bool(op, name, value, value_len), op, name,
                            [&] { return *value != 0; });
}

// Ignores the length, because the real library reads up to the terminating zero.
abi::status dnnl_graph_op_set_attr_str(abi::op op, int name, const char* value,
                                       std::size_t value_len) {
    return record_attribute(real_op_set_attr_str(op, name, value, value_len), op, name,
                            [&] { return std::string(value); });
}

} // namespace maskwise::onednn
