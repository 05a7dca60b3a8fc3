#include "precision_probe.hpp"

#include <openvino/op/constant.hpp>
#include <openvino/op/range.hpp>
#include <openvino/pass/constant_folding.hpp>

namespace maskwise::openvino {

std::shared_ptr<ov::Node> make_precision_probe() {
    const auto number = [](float value) {
        return ov::op::v0::Constant::create(ov::element::f32, {}, {value});
    };
    const auto made =
        std::make_shared<ov::op::v4::Range>(number(0), number(1), number(1), ov::element::f32);
    ov::pass::disable_constant_folding(made);
    return made;
}

bool is_in_16_bits(const ov::Node& probe) {
    return ov::is_type<ov::op::v4::Range>(&probe) && probe.get_rt_info().count("range_path") > 0;
}

} // namespace maskwise::openvino
