// Nodes of OpenVINO's own that become Maskwise's when the CPU plugin clones the model that it
// compiles. To everybody else they are what they were: to passes, other clones, files and other
// devices.
#pragma once

#include "found_block.hpp"

#include <openvino/op/select.hpp>

#include <memory>
#include <string>
#include <vector>

namespace maskwise::openvino {

class deferred {
public:
    virtual ~deferred() = default;
    // The nodes that Maskwise runs in the clone. None where edits have given what was taken a form
    // that Maskwise does not have.
    virtual node_set taken() const = 0;
};

class deferred_select : public ov::op::v1::Select, public deferred {
public:
    deferred_select() = default;
    // A Select that is taken is not decided on again.
    deferred_select(const ov::OutputVector& inputs, const ov::op::AutoBroadcastSpec& broadcast,
                    bool is_taken = false);

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    node_set taken() const override;

private:
    bool becomes_ours() const;

    bool is_taken_ = false;
};

// How a node came to be deferred.
struct deferral {
    bool is_taken = false;                       // then it is not decided on again
    std::weak_ptr<const ov::Node> replaced = {}; // reads what this reads, while somebody holds it
};

// Of a MatMul, a Softmax or a ScaledDotProductAttention, in which a block ends: the same of the
// same operation set, on these inputs.
std::shared_ptr<ov::Node> defer_end(const ov::Node& end, const ov::OutputVector& inputs,
                                    const deferral& how);
// What a front end makes of a MatMul, Select or ScaledDotProductAttention of IR, without inputs and
// attributes yet.
std::shared_ptr<ov::Node> make_node_of_ir(const ov::DiscreteTypeInfo& type);

// Friendly names of what Maskwise runs of a model, also in bodies, when the CPU plugin compiles it.
std::vector<std::string> names_of_taken(const ov::Model& model);

} // namespace maskwise::openvino
