// test_abi.py compiles this file with ONNX Runtime's headers. The declarations in
// integrations/onnxruntime must match these headers.
#include <onnxruntime_c_api.h>

#define MASKWISE_REAL_ONNXRUNTIME
#include "abi.hpp"

#include <type_traits>

namespace maskwise::ort {
namespace {

// The pointer type without noexcept, which is not part of a function's ABI.
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

#define F(type, name, number) static_assert(name == static_cast<type>(number), #name);
MASKWISE_ORT_NUMBERS(F)
#undef F

#define MASKWISE_DATA_TYPE(name, width, onednn, onnx, onnx_name, ...)                              \
    static_assert(::ONNX_TENSOR_ELEMENT_DATA_TYPE_##onnx_name == onnx, #onnx_name);
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE

#define SLOT(table, slot, name, result, parameters)                                                \
    static_assert(offsetof(table, name) == slot * sizeof(void*), #name " has another slot");       \
    static_assert(is_same<result(*) parameters, decltype(table::name)>, #name " has another "      \
                                                                              "type");
#define MAIN(slot, name, result, parameters) SLOT(::OrtApi, slot, name, result, parameters)
#define EP(slot, name, result, parameters) SLOT(::OrtEpApi, slot, name, result, parameters)
#include "functions.inc"

#define PLACE(structure, name)                                                                     \
    static_assert(offsetof(declared::structure, name) == offsetof(::structure, name), #name);
#define MEMBER(structure, name)                                                                    \
    PLACE(structure, name)                                                                         \
    static_assert(is_same<decltype(declared::structure::name), decltype(::structure::name)>, #name);

MEMBER(OrtEp, ort_version_supported)
MEMBER(OrtEp, GetName)
MEMBER(OrtEp, GetCapability)
MEMBER(OrtEp, Compile)
MEMBER(OrtEp, ReleaseNodeComputeInfos)
MEMBER(OrtEp, GetKernelRegistry)
PLACE(OrtEp, IsConcurrentRunSupported)
MEMBER(OrtEpFactory, ort_version_supported)
MEMBER(OrtEpFactory, GetName)
MEMBER(OrtEpFactory, GetVendor)
MEMBER(OrtEpFactory, GetSupportedDevices)
MEMBER(OrtEpFactory, CreateEp)
MEMBER(OrtEpFactory, ReleaseEp)
MEMBER(OrtEpFactory, GetVendorId)
MEMBER(OrtEpFactory, GetVersion)
MEMBER(OrtEpFactory, CreateDataTransfer)
MEMBER(OrtEpFactory, IsStreamAware)
PLACE(OrtEpFactory, GetCustomOpDomains)
MEMBER(OrtKernelImpl, ort_version_supported)
MEMBER(OrtKernelImpl, flags)
MEMBER(OrtKernelImpl, Compute)
MEMBER(OrtKernelImpl, Release)
PLACE(OrtKernelImpl, SetSharedPrePackedWeight)
MEMBER(OrtNodeComputeInfo, ort_version_supported)
MEMBER(OrtNodeComputeInfo, CreateState)
MEMBER(OrtNodeComputeInfo, Compute)
MEMBER(OrtNodeComputeInfo, ReleaseState)
MEMBER(OrtApiBase, GetApi)
MEMBER(OrtApiBase, GetVersionString)
static_assert(is_same<declared::OrtKernelCreateFunc, ::OrtKernelCreateFunc>);

} // namespace
} // namespace maskwise::ort
