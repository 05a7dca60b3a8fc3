// Registered by core.add_extension: the operations of accelerated models, and the operation by
// which Python calls `accelerate`.
#include "accelerate.hpp"
#include "fused.hpp"
#include "layout.hpp"
#include "select.hpp"

#include <openvino/core/extension.hpp>
#include <openvino/core/graph_util.hpp>
#include <openvino/core/op_extension.hpp>

namespace maskwise::openvino {
namespace {

// Replaces ov::OpExtension, which depends on ov::Any's layout; 2026.1 changed this layout.
template <class Operation>
class operation_extension : public ov::BaseOpExtension {
public:
    const ov::DiscreteTypeInfo& get_type_info() const override {
        return Operation::get_type_info_static();
    }
    ov::OutputVector create(const ov::OutputVector& inputs,
                            ov::AttributeVisitor& visitor) const override {
        const auto node = std::make_shared<Operation>();
        node->set_arguments(inputs);
        node->visit_attributes(visitor);
        node->constructor_validate_and_infer_types();
        return node->outputs();
    }
    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }
};

// Python cannot call a C++ function on an OpenVINO model, but can create a node by OpenVINO's node
// factory, which calls `create` with the model's outputs. `create` returns these outputs.
class accelerate_call : public ov::BaseOpExtension {
public:
    const ov::DiscreteTypeInfo& get_type_info() const override {
        static const ov::DiscreteTypeInfo type("Accelerate", "maskwise");
        return type;
    }
    ov::OutputVector create(const ov::OutputVector& ends,
                            ov::AttributeVisitor& visitor) const override {
        accelerate_options options;
        visitor.on_attribute("force", options.force);
        visitor.on_attribute("zero_masked_rows", options.zero_masked_rows);
        ov::element::Type precision = options.precision;
        visitor.on_attribute("precision", precision);
        options.precision = precision;
        ov::NodeVector nodes;
        for (const auto& end : ends) nodes.push_back(end.get_node_shared_ptr());
        replace_claimed(ov::topological_sort(nodes), options);
        return ends;
    }
    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }
};

// May throw, because OpenVINO calls create_extensions as a C++ function despite its C name.
std::vector<ov::Extension::Ptr> make_extensions() {
    check_layout();
    return {std::make_shared<operation_extension<select>>(),
            std::make_shared<operation_extension<fused>>(), std::make_shared<accelerate_call>()};
}

} // namespace
} // namespace maskwise::openvino

OPENVINO_CREATE_EXTENSIONS(maskwise::openvino::make_extensions())
