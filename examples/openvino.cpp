// Runs a model in OpenVINO, with Maskwise's attention and Selects.
// usage: openvino model.xml
#include <maskwise/openvino.hpp>
#include <openvino/openvino.hpp>

#include <iostream>

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "usage: " << arguments[0] << " MODEL\n";
        return 2;
    }
    ov::Core core;
    const auto model = core.read_model(arguments[1]);
    ov::CompiledModel compiled = core.compile_model(maskwise::openvino::accelerate(model),
                                                    "CPU"); // MASKWISE_VERBOSE=1 prints decisions
    compiled.create_infer_request().infer();
    for (const auto& node : compiled.get_runtime_model()->get_ordered_ops())
        std::cout << node->get_friendly_name() << ": "
                  << node->get_rt_info()["layerType"].as<std::string>() << '\n';
}
