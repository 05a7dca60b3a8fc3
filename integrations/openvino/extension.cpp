// What core.add_extension finds: the operations, which compiled models hold, and the front ends'
// part, by which models that are read from IR and ONNX need no pass.
#include "deferred.hpp"
#include "fused.hpp"
#include "layout.hpp"
#include "select.hpp"

#include "maskwise/openvino.hpp"

#include <openvino/core/op_extension.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <string>

namespace maskwise::openvino {
namespace {

using onnx_conversion = ov::frontend::onnx::ConversionExtension;

// A node of a model that is read. Not ov::OpExtension, which compiles ov::Any in: that is laid out
// otherwise in 2026.0 than in 2026.1.
class node_of_ir : public ov::BaseOpExtension {
public:
    using maker = std::shared_ptr<ov::Node> (*)(const ov::DiscreteTypeInfo&);
    node_of_ir(const ov::DiscreteTypeInfo& type, maker make) : type_(type), make_(make) {}
    const ov::DiscreteTypeInfo& get_type_info() const override { return type_; }
    ov::OutputVector create(const ov::OutputVector& inputs,
                            ov::AttributeVisitor& visitor) const override {
        const auto node = make_(type_);
        node->set_arguments(inputs);
        node->visit_attributes(visitor);
        node->constructor_validate_and_infer_types();
        return node->outputs();
    }
    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }

private:
    const ov::DiscreteTypeInfo& type_;
    maker make_;
};

template <class Operation>
ov::Extension::Ptr own_node() {
    return std::make_shared<node_of_ir>(
        Operation::get_type_info_static(),
        [](const ov::DiscreteTypeInfo&) -> std::shared_ptr<ov::Node> {
            return std::make_shared<Operation>();
        });
}

template <class Operation>
ov::Extension::Ptr deferred_node() {
    return std::make_shared<node_of_ir>(Operation::get_type_info_static(), make_node_of_ir);
}

ov::OutputVector where_of_onnx(const ov::frontend::NodeContext& node) {
    const ov::OutputVector inputs{node.get_input(0), node.get_input(1), node.get_input(2)};
    return std::make_shared<deferred_select>(inputs, ov::op::AutoBroadcastType::NUMPY)->outputs();
}

ov::OutputVector product_of_onnx(const ov::frontend::NodeContext& node) {
    const ov::OutputVector inputs{node.get_input(0), node.get_input(1)};
    return defer_end(ov::op::v0::MatMul(), inputs, {})->outputs();
}

// What Python asks of a model, to which OpenVINO gives no way to functions of a library. Its node
// factory can create these, with an operation that holds the model, and gets its outputs back.
class call_of_python : public ov::BaseOpExtension {
public:
    explicit call_of_python(const char* name) : type_(name, "maskwise") {}
    const ov::DiscreteTypeInfo& get_type_info() const override { return type_; }
    ov::OutputVector create(const ov::OutputVector& inputs,
                            ov::AttributeVisitor& visitor) const override {
        auto* const holder = ov::as_type<ov::op::util::MultiSubGraphOp>(inputs.at(0).get_node());
        OPENVINO_ASSERT(holder != nullptr, "Maskwise: no operation with a model in it");
        run(*holder, visitor);
        return inputs;
    }
    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }

private:
    virtual void run(ov::op::util::MultiSubGraphOp& holder,
                     ov::AttributeVisitor& visitor) const = 0;

    ov::DiscreteTypeInfo type_;
};

class accelerate_call : public call_of_python {
public:
    accelerate_call() : call_of_python("Accelerate") {}

private:
    void run(ov::op::util::MultiSubGraphOp& holder, ov::AttributeVisitor& visitor) const override {
        accelerate_options options;
        visitor.on_attribute("force", options.force);
        visitor.on_attribute("allow_narrowing", options.allow_narrowing);
        accelerate_select(options).run_on_model(holder.get_function(0));
    }
};

// The names are the holder's then, each with a null character behind it: ov::Any, which runtime
// info is made of, must not be compiled in.
class taken_call : public call_of_python {
public:
    taken_call() : call_of_python("Taken") {}

private:
    void run(ov::op::util::MultiSubGraphOp& holder, ov::AttributeVisitor&) const override {
        std::string names;
        for (const auto& name : names_of_taken(*holder.get_function(0))) names += name + '\0';
        holder.set_friendly_name(names);
    }
};

// OpenVINO expects exceptions of create_extensions, a C++ function but for its name.
std::vector<ov::Extension::Ptr> make_extensions() {
    check_layout();
    return {own_node<select>(),
            own_node<fused>(),
            deferred_node<ov::op::v1::Select>(),
            deferred_node<ov::op::v0::MatMul>(),
            deferred_node<ov::op::v13::ScaledDotProductAttention>(),
            std::make_shared<onnx_conversion>("Where", where_of_onnx),
            std::make_shared<onnx_conversion>("MatMul", product_of_onnx),
            std::make_shared<accelerate_call>(),
            std::make_shared<taken_call>()};
}

} // namespace
} // namespace maskwise::openvino

OPENVINO_CREATE_EXTENSIONS(maskwise::openvino::make_extensions())
