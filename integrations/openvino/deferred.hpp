// Nodes of OpenVINO's own that become Maskwise's when the CPU plugin clones the model that it
// compiles. To everybody else they are opset1::Select and Softmax: to passes, other clones, files
// and other devices.
#pragma once

#include "claims.hpp"

#include <openvino/op/select.hpp>

#include <memory>

namespace maskwise::openvino {

class deferred_select : public ov::op::v1::Select {
public:
    deferred_select() = default;
    // A Select that is taken is not decided on again.
    deferred_select(const ov::OutputVector& inputs, const ov::op::AutoBroadcastSpec& broadcast,
                    bool is_taken = false);

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;

private:
    bool becomes_ours() const;

    bool is_taken_ = false;
};

// Of the same operation set as the given one, which is opset1's or opset8's.
std::shared_ptr<ov::Node> defer_softmax(const ov::Node& softmax, bool is_forced);

} // namespace maskwise::openvino
