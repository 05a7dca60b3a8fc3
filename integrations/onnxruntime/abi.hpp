#pragma once

#include <cstddef>
#include <cstdint>

// Declares the types and constants of ONNX Runtime's C API that the provider uses, because ONNX
// Runtime's wheels contain no headers. functions.inc lists the functions. New versions of the API
// only append members. tests/onnxruntime compares both files with the real headers. The real
// headers declare the same types, so the tests define MASKWISE_REAL_ONNXRUNTIME.
#ifndef MASKWISE_REAL_ONNXRUNTIME
struct OrtApi;
struct OrtEpApi;
struct OrtStatus;
struct OrtLogger;
struct OrtSessionOptions;
struct OrtHardwareDevice;
struct OrtKeyValuePairs;
struct OrtEpDevice;
struct OrtGraph;
struct OrtNode;
struct OrtValue;
struct OrtValueInfo;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtEpGraphSupportInfo;
struct OrtKernelRegistry;
struct OrtKernelDefBuilder;
struct OrtKernelDef;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtDataType;
struct OrtDataTransferImpl;
struct OrtNodeFusionOptions;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtEp;
struct OrtEpFactory;
struct OrtKernelImpl;
struct OrtNodeComputeInfo;
// In C, these enumerations have the type unsigned int.
enum OrtErrorCode : unsigned {};
enum ONNXTensorElementDataType : unsigned {};
enum OrtHardwareDeviceType : unsigned {};
enum OrtOpAttrType : unsigned {};
#endif

// F(type, name, number)
#define MASKWISE_ORT_NUMBERS(F)                                                                    \
    F(OrtErrorCode, ORT_FAIL, 1)                                                                   \
    F(OrtErrorCode, ORT_INVALID_ARGUMENT, 2)                                                       \
    F(OrtErrorCode, ORT_NOT_IMPLEMENTED, 9)                                                        \
    F(OrtHardwareDeviceType, OrtHardwareDeviceType_CPU, 0)                                         \
    F(OrtOpAttrType, ORT_OP_ATTR_INT, 1)                                                           \
    F(OrtOpAttrType, ORT_OP_ATTR_INTS, 2)                                                          \
    F(OrtOpAttrType, ORT_OP_ATTR_FLOAT, 3)

#ifndef MASKWISE_REAL_ONNXRUNTIME
#define F(type, name, number) inline constexpr type name = static_cast<type>(number);
MASKWISE_ORT_NUMBERS(F)
#undef F
#endif

// Structures that a provider fills, with the members of API version 24 in the API's order. ONNX
// Runtime reads only the members of version ort_version_supported, and skips most null functions.
#ifdef MASKWISE_REAL_ONNXRUNTIME
namespace maskwise::ort::declared {
#endif

using unused_function = void (*)();

struct OrtEp {
    std::uint32_t ort_version_supported;
    const char* (*GetName)(const ::OrtEp*) noexcept;
    OrtStatus* (*GetCapability)(::OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) noexcept;
    OrtStatus* (*Compile)(::OrtEp*, const OrtGraph**, const OrtNode** fused, std::size_t count,
                          ::OrtNodeComputeInfo**, OrtNode** contexts) noexcept;
    void (*ReleaseNodeComputeInfos)(::OrtEp*, ::OrtNodeComputeInfo**, std::size_t) noexcept;
    unused_function GetPreferredDataLayout, ShouldConvertDataLayoutForOp, SetDynamicOptions,
        OnRunStart, OnRunEnd, CreateAllocator, CreateSyncStreamForDevice,
        GetCompiledModelCompatibilityInfo;
    OrtStatus* (*GetKernelRegistry)(::OrtEp*, const OrtKernelRegistry**) noexcept;
    unused_function IsConcurrentRunSupported;
};
static_assert(sizeof(OrtEp) == 15 * sizeof(void*));

struct OrtEpFactory {
    std::uint32_t ort_version_supported;
    const char* (*GetName)(const ::OrtEpFactory*) noexcept;
    const char* (*GetVendor)(const ::OrtEpFactory*) noexcept;
    OrtStatus* (*GetSupportedDevices)(::OrtEpFactory*, const OrtHardwareDevice* const*, std::size_t,
                                      OrtEpDevice**, std::size_t, std::size_t*) noexcept;
    OrtStatus* (*CreateEp)(::OrtEpFactory*, const OrtHardwareDevice* const*,
                           const OrtKeyValuePairs* const*, std::size_t, const OrtSessionOptions*,
                           const OrtLogger*, ::OrtEp**) noexcept;
    void (*ReleaseEp)(::OrtEpFactory*, ::OrtEp*) noexcept;
    std::uint32_t (*GetVendorId)(const ::OrtEpFactory*) noexcept;
    const char* (*GetVersion)(const ::OrtEpFactory*) noexcept;
    unused_function ValidateCompiledModelCompatibilityInfo, CreateAllocator, ReleaseAllocator;
    OrtStatus* (*CreateDataTransfer)(::OrtEpFactory*, OrtDataTransferImpl**) noexcept;
    bool (*IsStreamAware)(const ::OrtEpFactory*) noexcept;
    unused_function CreateSyncStreamForDevice, GetHardwareDeviceIncompatibilityDetails,
        CreateExternalResourceImporterForDevice, GetNumCustomOpDomains, GetCustomOpDomains;
};
static_assert(sizeof(OrtEpFactory) == 18 * sizeof(void*));

struct OrtKernelImpl {
    std::uint32_t ort_version_supported;
    std::uint32_t flags; // always 0
    OrtStatus* (*Compute)(::OrtKernelImpl*, OrtKernelContext*) noexcept;
    void (*Release)(::OrtKernelImpl*) noexcept;
    unused_function PrePackWeight, SetSharedPrePackedWeight;
};
static_assert(sizeof(OrtKernelImpl) == 5 * sizeof(void*));

struct OrtNodeComputeInfo {
    std::uint32_t ort_version_supported;
    OrtStatus* (*CreateState)(::OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) noexcept;
    OrtStatus* (*Compute)(::OrtNodeComputeInfo*, void* state, OrtKernelContext*) noexcept;
    void (*ReleaseState)(::OrtNodeComputeInfo*, void* state) noexcept;
};
static_assert(sizeof(OrtNodeComputeInfo) == 4 * sizeof(void*));

struct OrtApiBase {
    const OrtApi* (*GetApi)(std::uint32_t version) noexcept;
    const char* (*GetVersionString)() noexcept;
};

using OrtKernelCreateFunc = OrtStatus* (*)(void* state, const OrtKernelInfo*, ::OrtKernelImpl**);

#ifdef MASKWISE_REAL_ONNXRUNTIME
} // namespace maskwise::ort::declared
#endif

namespace maskwise::ort {

// The first version with kernel registries: ONNX Runtime 1.24.
inline constexpr std::uint32_t api_version = 24;

} // namespace maskwise::ort
