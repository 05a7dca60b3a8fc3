#pragma once

#include <cstddef>
#include <cstdint>

// ONNX Runtime's C API as far as an execution provider uses it, declared by this project: no wheel
// has its headers, and the API only ever appends. functions.inc lists the functions.
// tests/onnxruntime compares both with the real headers, where these types are the real ones
// (MASKWISE_REAL_ONNXRUNTIME).
namespace maskwise::ort::abi {

// The first version with kernel registries: ONNX Runtime 1.24.
inline constexpr std::uint32_t api_version = 24;

// F(name here, name there)
#define MASKWISE_ORT_OBJECTS(F)                                                                    \
    F(status, OrtStatus)                                                                           \
    F(logger, OrtLogger)                                                                           \
    F(session_options, OrtSessionOptions)                                                          \
    F(hardware_device, OrtHardwareDevice)                                                          \
    F(key_value_pairs, OrtKeyValuePairs)                                                           \
    F(ep_device, OrtEpDevice)                                                                      \
    F(graph, OrtGraph)                                                                             \
    F(node, OrtNode)                                                                               \
    F(value, OrtValue)                                                                             \
    F(value_info, OrtValueInfo)                                                                    \
    F(type_info, OrtTypeInfo)                                                                      \
    F(tensor_info, OrtTensorTypeAndShapeInfo)                                                      \
    F(support_info, OrtEpGraphSupportInfo)                                                         \
    F(kernel_registry, OrtKernelRegistry)                                                          \
    F(kernel_def_builder, OrtKernelDefBuilder)                                                     \
    F(kernel_def, OrtKernelDef)                                                                    \
    F(kernel_info, OrtKernelInfo)                                                                  \
    F(kernel_context, OrtKernelContext)                                                            \
    F(data_type, OrtDataType)                                                                      \
    F(data_transfer, OrtDataTransferImpl)                                                          \
    F(fusion_options, OrtNodeFusionOptions)                                                        \
    F(compute_context, OrtNodeComputeContext)                                                      \
    F(attribute, OrtOpAttr)

#ifdef MASKWISE_REAL_ONNXRUNTIME
#define F(here, there) using here = ::there;
#else
#define F(here, there) struct here;
#endif
MASKWISE_ORT_OBJECTS(F)
#undef F

namespace layout {
struct ep;
struct ep_factory;
struct kernel_impl;
struct compute_info;
} // namespace layout

#ifdef MASKWISE_REAL_ONNXRUNTIME
using error_code = ::OrtErrorCode;
using element_type = ::ONNXTensorElementDataType;
using device_type = ::OrtHardwareDeviceType;
using attribute_type = ::OrtOpAttrType;
using ep = ::OrtEp;
using ep_factory = ::OrtEpFactory;
using kernel_impl = ::OrtKernelImpl;
using compute_info = ::OrtNodeComputeInfo;
using api = ::OrtApi;
using ep_api = ::OrtEpApi;
#else
// Enumerations of C: an unsigned int.
enum error_code : unsigned {};
enum element_type : unsigned {};
enum device_type : unsigned {};
enum attribute_type : unsigned {};
using ep = layout::ep;
using ep_factory = layout::ep_factory;
using kernel_impl = layout::kernel_impl;
using compute_info = layout::compute_info;
struct api;    // a table of functions
struct ep_api; // another
#endif

// F(type, name here, number, name there)
#define MASKWISE_ORT_NUMBERS(F)                                                                    \
    F(error_code, error_fail, 1, ORT_FAIL)                                                         \
    F(error_code, error_invalid_argument, 2, ORT_INVALID_ARGUMENT)                                 \
    F(error_code, error_not_implemented, 9, ORT_NOT_IMPLEMENTED)                                   \
    F(device_type, device_cpu, 0, OrtHardwareDeviceType_CPU)                                       \
    F(attribute_type, attribute_int, 1, ORT_OP_ATTR_INT)                                           \
    F(attribute_type, attribute_ints, 2, ORT_OP_ATTR_INTS)                                         \
    F(attribute_type, attribute_float, 3, ORT_OP_ATTR_FLOAT)                                       \
    F(element_type, element_f32, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)                           \
    F(element_type, element_u8, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8)                            \
    F(element_type, element_i8, 3, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8)                             \
    F(element_type, element_u16, 4, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16)                          \
    F(element_type, element_i16, 5, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16)                           \
    F(element_type, element_i32, 6, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32)                           \
    F(element_type, element_i64, 7, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)                           \
    F(element_type, element_string, 8, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)                       \
    F(element_type, element_bool, 9, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL)                           \
    F(element_type, element_f16, 10, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16)                        \
    F(element_type, element_f64, 11, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE)                         \
    F(element_type, element_u32, 12, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32)                         \
    F(element_type, element_u64, 13, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64)                         \
    F(element_type, element_bf16, 16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16)

#define F(type, here, number, there) inline constexpr type here = static_cast<type>(number);
MASKWISE_ORT_NUMBERS(F)
#undef F

using unused_function = void (*)();

// Structures that a provider fills: the members of version 24 in their order. Functions that are
// null are not called; ort_version_supported says how far a structure goes.
namespace layout {

struct ep {
    std::uint32_t ort_version_supported;
    const char* (*GetName)(const abi::ep*) noexcept;
    status* (*GetCapability)(abi::ep*, const graph*, support_info*) noexcept;
    status* (*Compile)(abi::ep*, const graph**, const node** fused, std::size_t count,
                       abi::compute_info**, node** contexts) noexcept;
    void (*ReleaseNodeComputeInfos)(abi::ep*, abi::compute_info**, std::size_t) noexcept;
    unused_function GetPreferredDataLayout, ShouldConvertDataLayoutForOp, SetDynamicOptions,
        OnRunStart, OnRunEnd, CreateAllocator, CreateSyncStreamForDevice,
        GetCompiledModelCompatibilityInfo;
    status* (*GetKernelRegistry)(abi::ep*, const kernel_registry**) noexcept;
    unused_function IsConcurrentRunSupported;
};
static_assert(sizeof(ep) == 15 * sizeof(void*));

struct ep_factory {
    std::uint32_t ort_version_supported;
    const char* (*GetName)(const abi::ep_factory*) noexcept;
    const char* (*GetVendor)(const abi::ep_factory*) noexcept;
    status* (*GetSupportedDevices)(abi::ep_factory*, const hardware_device* const*, std::size_t,
                                   ep_device**, std::size_t, std::size_t*) noexcept;
    status* (*CreateEp)(abi::ep_factory*, const hardware_device* const*,
                        const key_value_pairs* const*, std::size_t, const session_options*,
                        const logger*, abi::ep**) noexcept;
    void (*ReleaseEp)(abi::ep_factory*, abi::ep*) noexcept;
    std::uint32_t (*GetVendorId)(const abi::ep_factory*) noexcept;
    const char* (*GetVersion)(const abi::ep_factory*) noexcept;
    unused_function ValidateCompiledModelCompatibilityInfo, CreateAllocator, ReleaseAllocator;
    status* (*CreateDataTransfer)(abi::ep_factory*, data_transfer**) noexcept;
    bool (*IsStreamAware)(const abi::ep_factory*) noexcept;
    unused_function CreateSyncStreamForDevice, GetHardwareDeviceIncompatibilityDetails,
        CreateExternalResourceImporterForDevice, GetNumCustomOpDomains, GetCustomOpDomains;
};
static_assert(sizeof(ep_factory) == 18 * sizeof(void*));

struct kernel_impl {
    std::uint32_t ort_version_supported;
    std::uint32_t flags; // 0
    status* (*Compute)(abi::kernel_impl*, kernel_context*) noexcept;
    void (*Release)(abi::kernel_impl*) noexcept;
    unused_function PrePackWeight, SetSharedPrePackedWeight;
};
static_assert(sizeof(kernel_impl) == 5 * sizeof(void*));

struct compute_info {
    std::uint32_t ort_version_supported;
    status* (*CreateState)(abi::compute_info*, compute_context*, void** state) noexcept;
    status* (*Compute)(abi::compute_info*, void* state, kernel_context*) noexcept;
    void (*ReleaseState)(abi::compute_info*, void* state) noexcept;
};
static_assert(sizeof(compute_info) == 4 * sizeof(void*));

struct api_base {
    const api* (*GetApi)(std::uint32_t version) noexcept;
    const char* (*GetVersionString)() noexcept;
};

} // namespace layout

using kernel_create_function = status* (*)(void* state, const kernel_info*, kernel_impl**);

} // namespace maskwise::ort::abi
