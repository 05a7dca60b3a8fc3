// The two exported functions and the factory. A process may load several copies of ONNX Runtime.
// Each copy that registers the library gets a separate factory.
#include "kernel_context.hpp"
#include "provider.hpp"

#include "base/verbose.hpp"

#include <atomic>
#include <charconv>
#include <memory>
#include <optional>
#include <string>

namespace maskwise::ort {
namespace {

class factory : public OrtEpFactory {
public:
    explicit factory(const runtime& api)
        : OrtEpFactory{}, api_(api), kernels_(make_kernel_registry(api_)) {
        ort_version_supported = api_version;
        GetName = [](const OrtEpFactory*) noexcept { return provider_name; };
        GetVendor = [](const OrtEpFactory*) noexcept { return "Maskwise"; };
        GetVendorId = [](const OrtEpFactory*) noexcept { return std::uint32_t{0}; };
        GetVersion = [](const OrtEpFactory*) noexcept { return MASKWISE_VERSION; };
        GetSupportedDevices = list_devices;
        CreateEp = make_provider;
        ReleaseEp = [](OrtEpFactory* base, OrtEp* ep) noexcept {
            delete static_cast<provider*>(ep);
            self(base).drop();
        };
        // ONNX Runtime calls these two functions even if they are null.
        CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** none) noexcept {
            *none = nullptr;
            return static_cast<OrtStatus*>(nullptr);
        };
        IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    }

    // The library may be unregistered while sessions still have providers. The last provider then
    // deletes the factory.
    OrtStatus* release() noexcept {
        const int sessions = holders_ - 1;
        const runtime api = api_;
        drop();
        if (sessions == 0) return nullptr;
        return guarded(api, [&] {
            throw error("Maskwise is unregistered while in use; sessions that may still run: " +
                        std::to_string(sessions));
        });
    }

private:
    void drop() noexcept {
        if (--holders_ == 0) delete this;
    }
    static factory& self(OrtEpFactory* base) { return *static_cast<factory*>(base); }

    // The devices have no allocator, so ONNX Runtime treats them as the CPU and copies nothing.
    static OrtStatus* list_devices(OrtEpFactory* base, const OrtHardwareDevice* const* hardware,
                                   std::size_t count, OrtEpDevice** devices, std::size_t most,
                                   std::size_t* listed) noexcept {
        const runtime& api = self(base).api_;
        *listed = 0;
        return guarded(api, [&] {
            for (std::size_t i = 0; i < count && *listed < most; ++i) {
                if (api.HardwareDevice_Type(hardware[i]) != OrtHardwareDeviceType_CPU) continue;
                check(api.CreateEpDevice(base, hardware[i], nullptr, nullptr, &devices[*listed]));
                ++*listed;
            }
        });
    }

    static OrtStatus* make_provider(OrtEpFactory* base, const OrtHardwareDevice* const*,
                                    const OrtKeyValuePairs* const*, std::size_t,
                                    const OrtSessionOptions* options, const OrtLogger*,
                                    OrtEp** ep) noexcept {
        factory& factory = self(base);
        return guarded(factory.api_, [&] {
            const session_settings settings{
                factory.setting(options, "maskwise.verbose", verbose_level() > 0),
                factory.setting(options, "maskwise.enable", true),
                factory.reason_against_fusions(options), factory.has_stable_optimizers(options),
                factory.threads_of(options)};
            *ep = std::make_unique<provider>(factory.api_, factory.kernels_.get(), settings)
                      .release();
            ++factory.holders_;
        });
    }

    std::optional<std::string> entry(const OrtSessionOptions* options, const char* key) const {
        int has = 0;
        check(api_.HasSessionConfigEntry(options, key, &has));
        if (has == 0) return std::nullopt;
        std::size_t size = 0;
        check(api_.GetSessionConfigEntry(options, key, nullptr, &size));
        std::string text(size, '\0');
        check(api_.GetSessionConfigEntry(options, key, text.data(), &size));
        text.resize(size - 1); // drops the final 0
        return text;
    }

    bool setting(const OrtSessionOptions* options, const char* key, bool fallback) const {
        const std::string text = entry(options, key).value_or(fallback ? "1" : "0");
        if (text != "0" && text != "1")
            throw argument_error(std::string(key) + " is '" + text + "', expected 0 or 1");
        return text == "1";
    }

    // With ep.context_enable, ONNX Runtime saves a model with the compiled context of each fused
    // node. Maskwise has no such contexts, so it fuses nothing. The saved model then has the
    // original operators, which Maskwise fuses when the model is loaded.
    std::string reason_against_fusions(const OrtSessionOptions* options) const {
        if (!setting(options, "maskwise.fuse", true)) return "maskwise.fuse is 0";
        return entry(options, "ep.context_enable") == "1" ? "ep.context_enable is 1" : "";
    }

    bool has_stable_optimizers(const OrtSessionOptions* options) const {
        const auto disabled = entry(options, "optimization.disable_specified_optimizers");
        return disabled && disabled->find("MatmulTransposeFusion") != std::string::npos;
    }

    // ONNX Runtime does not tell a provider how many threads its session has.
    int threads_of(const OrtSessionOptions* options) const {
        constexpr int most = 4096;
        const std::string text = entry(options, "maskwise.threads").value_or("0");
        int threads = -1;
        const auto [end, failure] =
            std::from_chars(text.data(), text.data() + text.size(), threads);
        if (failure != std::errc{} || end != text.data() + text.size() || threads < 0 ||
            threads > most)
            throw argument_error("maskwise.threads is '" + text +
                                 "', expected a number from 0 (all processors) to " +
                                 std::to_string(most));
        return threads == 0 ? processors() : threads;
    }

    const runtime api_;
    const owned<OrtKernelRegistry> kernels_;
    std::atomic<int> holders_ = 1; // each provider, and ONNX Runtime until release()
};

// CreateStatus is the first function of OrtApi in every version.
OrtStatus* refuse(const OrtApiBase* base, const std::string& why) {
    const auto* const table = reinterpret_cast<const unused_function*>(base->GetApi(1));
    if (table == nullptr) return nullptr;
    return reinterpret_cast<decltype(runtime::CreateStatus)>(table[0])(ORT_NOT_IMPLEMENTED,
                                                                       why.c_str());
}

} // namespace
} // namespace maskwise::ort

using namespace maskwise::ort;

extern "C" {

__attribute__((visibility("default"))) OrtStatus*
CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories,
                  std::size_t capacity, std::size_t* count) noexcept {
    *count = 0;
    const OrtApi* const table = base->GetApi(api_version);
    if (table == nullptr)
        return refuse(base, std::string("Maskwise needs ONNX Runtime 1.24 or newer, this is ") +
                                base->GetVersionString());
    const runtime api = read_runtime(table, base->GetVersionString());
    return guarded(api, [&] {
        if (capacity == 0) throw maskwise::argument_error("no room for Maskwise's factory");
        factories[0] = std::make_unique<factory>(api).release();
        *count = 1;
    });
}

__attribute__((visibility("default"))) OrtStatus*
ReleaseEpFactory(OrtEpFactory* released) noexcept {
    return static_cast<factory*>(released)->release();
}

} // extern "C"
