#pragma once

#include <openvino/op/convert.hpp>

namespace maskwise::openvino {

inline bool converts(const ov::Node& node, ov::element::Type from, ov::element::Type to) {
    return ov::is_type<ov::op::v0::Convert>(&node) && node.get_input_element_type(0) == from &&
           node.get_output_element_type(0) == to;
}

// Lets an input have what a conversion in front of it has.
inline void bypass(ov::Input<ov::Node> input) {
    input.replace_source_output(input.get_source_output().get_node()->input_value(0));
}

} // namespace maskwise::openvino
