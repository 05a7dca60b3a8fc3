// Runs a model in ONNX Runtime 1.24 or newer, with Maskwise as an execution provider.
// usage: onnxruntime <prefix>/lib/libmaskwise_onnxruntime.so model.onnx
#include <onnxruntime_cxx_api.h>

#include <iostream>
#include <string_view>

int main(int, char** arguments) {
    const char* const provider = "MaskwiseExecutionProvider";
    Ort::Env env;
    env.RegisterExecutionProviderLibrary(provider, arguments[1]);
    Ort::SessionOptions options;
    options.AddConfigEntry("maskwise.verbose", "1"); // prints a line per candidate node
    for (const Ort::ConstEpDevice& device : env.GetEpDevices())
        if (device.EpName() == std::string_view(provider))
            options.AppendExecutionProvider_V2(env, {device}, Ort::KeyValuePairs{});
    const Ort::Session session(env, arguments[2], options);
    std::cout << session.GetInputCount() << " inputs\n";
}
