// Compiled by test_abi.py against the real headers of ONNX Runtime: what integrations/onnxruntime
// declares must be what they declare.
#include <onnxruntime_c_api.h>

#define MASKWISE_REAL_ONNXRUNTIME
#include "abi.hpp"

#include <type_traits>

namespace maskwise::ort {
namespace {

// Whether functions may throw is not part of their ABI.
template <class Function>
struct plain {
    using type = Function;
};
template <class Result, class... Parameters>
struct plain<Result (*)(Parameters...) noexcept> {
    using type = Result (*)(Parameters...);
};
template <class Ours, class Theirs>
constexpr bool is_same = std::is_same_v<typename plain<Ours>::type, typename plain<Theirs>::type>;

#define F(type, here, number, there) static_assert(abi::here == ::there, #there);
MASKWISE_ORT_NUMBERS(F)
#undef F

#define SLOT(table, slot, name, result, parameters)                                                \
    static_assert(offsetof(table, name) == slot * sizeof(void*), #name " is elsewhere");           \
    static_assert(is_same<result(*) parameters, decltype(table::name)>, #name " is another");
#define MAIN(slot, name, result, parameters) SLOT(::OrtApi, slot, name, result, parameters)
#define EP(slot, name, result, parameters) SLOT(::OrtEpApi, slot, name, result, parameters)
#include "functions.inc"
#undef MAIN
#undef EP

#define PLACE(here, there, name)                                                                   \
    static_assert(offsetof(abi::layout::here, name) == offsetof(::there, name), #name);
#define MEMBER(here, there, name)                                                                  \
    PLACE(here, there, name)                                                                       \
    static_assert(is_same<decltype(abi::layout::here::name), decltype(::there::name)>, #name);

MEMBER(ep, OrtEp, ort_version_supported)
MEMBER(ep, OrtEp, GetName)
MEMBER(ep, OrtEp, GetCapability)
MEMBER(ep, OrtEp, Compile)
MEMBER(ep, OrtEp, ReleaseNodeComputeInfos)
MEMBER(ep, OrtEp, GetKernelRegistry)
PLACE(ep, OrtEp, IsConcurrentRunSupported)
MEMBER(ep_factory, OrtEpFactory, ort_version_supported)
MEMBER(ep_factory, OrtEpFactory, GetName)
MEMBER(ep_factory, OrtEpFactory, GetVendor)
MEMBER(ep_factory, OrtEpFactory, GetSupportedDevices)
MEMBER(ep_factory, OrtEpFactory, CreateEp)
MEMBER(ep_factory, OrtEpFactory, ReleaseEp)
MEMBER(ep_factory, OrtEpFactory, GetVendorId)
MEMBER(ep_factory, OrtEpFactory, GetVersion)
MEMBER(ep_factory, OrtEpFactory, CreateDataTransfer)
MEMBER(ep_factory, OrtEpFactory, IsStreamAware)
PLACE(ep_factory, OrtEpFactory, GetCustomOpDomains)
MEMBER(kernel_impl, OrtKernelImpl, ort_version_supported)
MEMBER(kernel_impl, OrtKernelImpl, flags)
MEMBER(kernel_impl, OrtKernelImpl, Compute)
MEMBER(kernel_impl, OrtKernelImpl, Release)
PLACE(kernel_impl, OrtKernelImpl, SetSharedPrePackedWeight)
MEMBER(compute_info, OrtNodeComputeInfo, ort_version_supported)
MEMBER(compute_info, OrtNodeComputeInfo, CreateState)
MEMBER(compute_info, OrtNodeComputeInfo, Compute)
MEMBER(compute_info, OrtNodeComputeInfo, ReleaseState)
MEMBER(api_base, OrtApiBase, GetApi)
MEMBER(api_base, OrtApiBase, GetVersionString)
static_assert(is_same<abi::kernel_create_function, ::OrtKernelCreateFunc>);

} // namespace
} // namespace maskwise::ort
