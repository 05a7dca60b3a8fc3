// Nodes of OpenVINO's own that become Maskwise's when the CPU plugin clones the model that it
// compiles. To everybody else they are opset1::Select and Softmax: to passes, other clones, files
// and other devices.
#pragma once

#include "claims.hpp"

#include <openvino/op/select.hpp>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace maskwise::openvino {

using node_set = std::set<const ov::Node*>;

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

// Of the same operation set as the given one, which is opset1's or opset8's.
std::shared_ptr<ov::Node> defer_softmax(const ov::Node& softmax, bool is_forced);

// Friendly names of what Maskwise runs of a model, also in bodies, when the CPU plugin compiles it.
std::vector<std::string> names_of_taken(const ov::Model& model);

} // namespace maskwise::openvino
