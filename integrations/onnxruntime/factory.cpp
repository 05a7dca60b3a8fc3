// The two exported functions, and the factory that they make: one for each ONNX Runtime that
// registers the library.
#include "calls.hpp"
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
    explicit factory(const runtime& with)
        : OrtEpFactory{}, with_(with), kernels_(make_kernel_registry(with_)) {
        ort_version_supported = api_version;
        GetName = [](const OrtEpFactory*) noexcept { return provider_name; };
        GetVendor = [](const OrtEpFactory*) noexcept { return "Maskwise"; };
        GetVendorId = [](const OrtEpFactory*) noexcept { return std::uint32_t{0}; };
        GetVersion = [](const OrtEpFactory*) noexcept { return MASKWISE_VERSION; };
        GetSupportedDevices = list_devices;
        CreateEp = make_provider;
        ReleaseEp = [](OrtEpFactory* own, OrtEp* made) noexcept {
            delete static_cast<provider*>(made);
            self(own).drop();
        };
        // ONNX Runtime calls both without looking whether they are there.
        CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** none) noexcept {
            *none = nullptr;
            return static_cast<OrtStatus*>(nullptr);
        };
        IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    }

    // ONNX Runtime lets the library be unregistered while sessions have providers of it: then the
    // last of them takes the factory with it.
    OrtStatus* release() noexcept {
        const int sessions = holders_ - 1;
        const runtime with = with_;
        drop();
        if (sessions == 0) return nullptr;
        return guarded(with, [&] {
            throw error("Maskwise is unregistered while " + std::to_string(sessions) +
                        " sessions use it; they may go on");
        });
    }

private:
    void drop() noexcept {
        if (--holders_ == 0) delete this;
    }
    static factory& self(OrtEpFactory* own) { return *static_cast<factory*>(own); }

    // Without an allocator of its own: so a device is the CPU, and nothing is copied to it.
    static OrtStatus* list_devices(OrtEpFactory* own, const OrtHardwareDevice* const* hardware,
                                   std::size_t count, OrtEpDevice** devices, std::size_t most,
                                   std::size_t* listed) noexcept {
        const runtime& with = self(own).with_;
        *listed = 0;
        return guarded(with, [&] {
            for (std::size_t i = 0; i < count && *listed < most; ++i) {
                if (with.HardwareDevice_Type(hardware[i]) != OrtHardwareDeviceType_CPU) continue;
                check(with.CreateEpDevice(own, hardware[i], nullptr, nullptr, &devices[*listed]));
                ++*listed;
            }
        });
    }

    static OrtStatus* make_provider(OrtEpFactory* own, const OrtHardwareDevice* const*,
                                    const OrtKeyValuePairs* const*, std::size_t,
                                    const OrtSessionOptions* options, const OrtLogger*,
                                    OrtEp** made) noexcept {
        factory& from = self(own);
        return guarded(from.with_, [&] {
            const session_settings settings{
                from.setting(options, "maskwise.verbose", verbose_level() > 0),
                from.setting(options, "maskwise.enable", true),
                from.reason_against_fusions(options), from.has_stable_optimizers(options),
                from.threads_of(options)};
            *made = std::make_unique<provider>(from.with_, from.kernels_.get(), settings).release();
            ++from.holders_;
        });
    }

    std::optional<std::string> entry(const OrtSessionOptions* options, const char* key) const {
        int has = 0;
        check(with_.HasSessionConfigEntry(options, key, &has));
        if (has == 0) return std::nullopt;
        std::size_t size = 0;
        check(with_.GetSessionConfigEntry(options, key, nullptr, &size));
        std::string text(size, '\0');
        check(with_.GetSessionConfigEntry(options, key, text.data(), &size));
        text.resize(size - 1); // of which the last is a 0
        return text;
    }

    bool setting(const OrtSessionOptions* options, const char* key, bool otherwise) const {
        const std::string text = entry(options, key).value_or(otherwise ? "1" : "0");
        if (text != "0" && text != "1")
            throw argument_error(std::string(key) + " is '" + text + "', expected 0 or 1");
        return text == "1";
    }

    // A fused node has nothing to compile ahead: a model that ONNX Runtime writes with its contexts
    // keeps the operators, which are fused when that model is loaded.
    std::string reason_against_fusions(const OrtSessionOptions* options) const {
        if (!setting(options, "maskwise.fuse", true)) return "maskwise.fuse is 0";
        return entry(options, "ep.context_enable") == "1" ? "ep.context_enable is 1" : "";
    }

    bool has_stable_optimizers(const OrtSessionOptions* options) const {
        const auto disabled = entry(options, "optimization.disable_specified_optimizers");
        return disabled && disabled->find("MatmulTransposeFusion") != std::string::npos;
    }

    // ONNX Runtime tells nobody how many a session has.
    int threads_of(const OrtSessionOptions* options) const {
        constexpr int most = 4096;
        const std::string text = entry(options, "maskwise.threads").value_or("0");
        int threads = -1;
        const auto [end, failure] =
            std::from_chars(text.data(), text.data() + text.size(), threads);
        if (failure != std::errc{} || end != text.data() + text.size() || threads < 0 ||
            threads > most)
            throw argument_error("maskwise.threads is '" + text +
                                 "', expected a number from 0, for all processors, to " +
                                 std::to_string(most));
        return threads == 0 ? processors() : threads;
    }

    const runtime with_;
    const owned<OrtKernelRegistry> kernels_;
    std::atomic<int> holders_ = 1; // ONNX Runtime, until it releases the factory, and each provider
};

// CreateStatus has been the first function since the first version.
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
                  std::size_t most, std::size_t* made) noexcept {
    *made = 0;
    const OrtApi* const api = base->GetApi(api_version);
    if (api == nullptr)
        return refuse(base, std::string("Maskwise needs ONNX Runtime 1.24 or newer, this is ") +
                                base->GetVersionString());
    const runtime with = read_runtime(api, base->GetVersionString());
    return guarded(with, [&] {
        if (most == 0) throw maskwise::argument_error("no room for Maskwise's factory");
        factories[0] = std::make_unique<factory>(with).release();
        *made = 1;
    });
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* made) noexcept {
    return static_cast<factory*>(made)->release();
}

} // extern "C"
