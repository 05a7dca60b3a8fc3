// The two exported functions, and the factory that they make: one for each ONNX Runtime that
// registers the library.
#include "loop.hpp"
#include "provider.hpp"

#include "base/verbose.hpp"

#include <atomic>
#include <charconv>
#include <memory>
#include <optional>
#include <string>

namespace maskwise::ort {
namespace {

class factory : public abi::layout::ep_factory {
public:
    explicit factory(const runtime& with)
        : abi::layout::ep_factory{}, with_(with), kernels_(make_kernel_registry(with_)) {
        ort_version_supported = abi::api_version;
        GetName = [](const abi::ep_factory*) noexcept { return provider_name; };
        GetVendor = [](const abi::ep_factory*) noexcept { return "Maskwise"; };
        GetVendorId = [](const abi::ep_factory*) noexcept { return std::uint32_t{0}; };
        GetVersion = [](const abi::ep_factory*) noexcept { return MASKWISE_VERSION; };
        GetSupportedDevices = list_devices;
        CreateEp = make_provider;
        ReleaseEp = [](abi::ep_factory* own, abi::ep* made) noexcept {
            delete static_cast<provider*>(made);
            self(own).drop();
        };
        // ONNX Runtime calls both without looking whether they are there.
        CreateDataTransfer = [](abi::ep_factory*, abi::data_transfer** none) noexcept {
            *none = nullptr;
            return static_cast<abi::status*>(nullptr);
        };
        IsStreamAware = [](const abi::ep_factory*) noexcept { return false; };
    }

    // ONNX Runtime lets the library be unregistered while sessions have providers of it: then the
    // last of them takes the factory with it.
    abi::status* release() noexcept {
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
    static factory& self(abi::ep_factory* own) { return *static_cast<factory*>(own); }

    // Without an allocator of its own: so a device is the CPU, and nothing is copied to it.
    static abi::status* list_devices(abi::ep_factory* own,
                                     const abi::hardware_device* const* hardware, std::size_t count,
                                     abi::ep_device** devices, std::size_t most,
                                     std::size_t* listed) noexcept {
        const runtime& with = self(own).with_;
        *listed = 0;
        return guarded(with, [&] {
            for (std::size_t i = 0; i < count && *listed < most; ++i) {
                if (with.HardwareDevice_Type(hardware[i]) != abi::device_cpu) continue;
                check(with.CreateEpDevice(own, hardware[i], nullptr, nullptr, &devices[*listed]));
                ++*listed;
            }
        });
    }

    static abi::status* make_provider(abi::ep_factory* own, const abi::hardware_device* const*,
                                      const abi::key_value_pairs* const*, std::size_t,
                                      const abi::session_options* options, const abi::logger*,
                                      abi::ep** made) noexcept {
        factory& from = self(own);
        return guarded(from.with_, [&] {
            const session_settings settings{
                from.setting(options, "maskwise.verbose", verbose_level() > 0),
                from.setting(options, "maskwise.fuse", true), from.has_stable_optimizers(options),
                from.threads_of(options)};
            *made = std::make_unique<provider>(from.with_, from.kernels_.get(), settings).release();
            ++from.holders_;
        });
    }

    std::optional<std::string> entry(const abi::session_options* options, const char* key) const {
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

    bool setting(const abi::session_options* options, const char* key, bool otherwise) const {
        const std::string text = entry(options, key).value_or(otherwise ? "1" : "0");
        if (text != "0" && text != "1")
            throw invalid_argument(std::string(key) + " is '" + text + "', expected 0 or 1");
        return text == "1";
    }

    bool has_stable_optimizers(const abi::session_options* options) const {
        const auto disabled = entry(options, "optimization.disable_specified_optimizers");
        return disabled && disabled->find("MatmulTransposeFusion") != std::string::npos;
    }

    // ONNX Runtime tells nobody how many a session has.
    int threads_of(const abi::session_options* options) const {
        constexpr int most = 4096;
        const std::string text = entry(options, "maskwise.threads").value_or("0");
        int threads = -1;
        const auto [end, failure] =
            std::from_chars(text.data(), text.data() + text.size(), threads);
        if (failure != std::errc{} || end != text.data() + text.size() || threads < 0 ||
            threads > most)
            throw invalid_argument("maskwise.threads is '" + text +
                                   "', expected a number from 0, for all processors, to " +
                                   std::to_string(most));
        return threads == 0 ? processors() : threads;
    }

    const runtime with_;
    const registry_pointer kernels_;
    std::atomic<int> holders_ = 1; // ONNX Runtime, until it releases the factory, and each provider
};

// CreateStatus has been the first function since the first version.
abi::status* refuse(const abi::layout::api_base* base, const std::string& why) {
    const auto* const table = reinterpret_cast<const abi::unused_function*>(base->GetApi(1));
    if (table == nullptr) return nullptr;
    return reinterpret_cast<decltype(runtime::CreateStatus)>(table[0])(abi::error_not_implemented,
                                                                       why.c_str());
}

} // namespace
} // namespace maskwise::ort

using namespace maskwise::ort;

extern "C" {

__attribute__((visibility("default"))) abi::status*
CreateEpFactories(const char*, const abi::layout::api_base* base, const abi::logger*,
                  abi::ep_factory** factories, std::size_t most, std::size_t* made) noexcept {
    *made = 0;
    const abi::api* const api = base->GetApi(abi::api_version);
    if (api == nullptr)
        return refuse(base, std::string("Maskwise needs ONNX Runtime 1.24 or newer, this is ") +
                                base->GetVersionString());
    const runtime with = read_runtime(api);
    return guarded(with, [&] {
        if (most == 0) throw maskwise::invalid_argument("no room for Maskwise's factory");
        factories[0] = std::make_unique<factory>(with).release();
        *made = 1;
    });
}

__attribute__((visibility("default"))) abi::status*
ReleaseEpFactory(abi::ep_factory* made) noexcept {
    return static_cast<factory*>(made)->release();
}

} // extern "C"
