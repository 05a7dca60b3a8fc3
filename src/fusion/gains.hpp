#pragma once

#include "plan/row_plan.hpp"

#include <cstdint>
#include <limits>
#include <utility>

namespace maskwise::fusion {

// Maskwise is faster than the host's kernels if least <= size <= most, in `unit`. Outside this
// range, the host runs its own operators.
struct gain {
    const char *host, *kind, *unit;
    std::int64_t least, most;
    bool if_unknown; // whether Maskwise runs sizes that are unknown before execution
    const char *reason, *measured;

    // A negative size is unknown.
    template <class Size>
    constexpr bool holds(Size size) const {
        if (std::cmp_less(size, 0)) return if_unknown;
        return std::cmp_less_equal(least, size) && std::cmp_less_equal(size, most);
    }
};

// Size bounds that decide whether Maskwise claims operators of these hosts. Further conditions are
// in onednn/partition/gains.cpp and in the integrations' claims.
namespace gains {

inline constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t unknown_size = -1;

// clang-format off
inline constexpr gain onednn_mask_of_scores{
    "oneDNN 3.8", "at most 3 steps, with a mask of the scores' shape", "scores", 4 << 20, no_bound, true,
    "splitting the partition costs more time than the rows save", "docs/onednn.md"};
inline constexpr gain onnxruntime_attention{
    "ONNX Runtime", "attention without a mask", "depth", 1, 64, false,
    "for deeper heads, the host's faster MatMuls save more time than not storing the scores", "docs/onnxruntime.md"};
inline constexpr gain onnxruntime_masked_attention{
    "ONNX Runtime", "attention with a mask", "depth", 0, 128, true,
    "for deeper heads, the host's faster MatMuls save more time than skipping masked scores", "docs/onnxruntime.md"};
inline constexpr gain onnxruntime_rows{
    "ONNX Runtime", "rows", "columns", 128, held_row_columns, true,
    "the host is faster for short rows; Maskwise computes long rows twice", "docs/onnxruntime.md"};
inline constexpr gain onnxruntime_selecting_rows{
    "ONNX Runtime", "rows with a Where", "columns", 32, no_bound, true,
    "the host's Where is slow, but the host is faster for short rows", "docs/onnxruntime.md"};
inline constexpr gain openvino_select{
    "OpenVINO", "Select", "bytes of the result", 32 << 20, no_bound, false,
    "a smaller result of the plugin's own kernel stays in the caches", "docs/openvino.md"};
inline constexpr gain openvino_boolean_input{
    "OpenVINO", "Select whose condition is an input", "elements of the condition", 16 << 10, no_bound, false,
    "the plugin copies the condition to u8; a smaller copy takes little time", "docs/openvino.md"};
inline constexpr gain openvino_broadcast_input{
    "OpenVINO", "Select whose condition is an input", "elements of the result per element of the condition", 0, 16, false,
    "for a larger result, the copy is a small part of the time", "docs/openvino.md"};
inline constexpr gain openvino_rows{
    "OpenVINO", "rows", "bytes of scores", 1 << 18, no_bound, false,
    "calling Maskwise costs more time than the rows save", "docs/openvino.md"};
inline constexpr gain openvino_attention{
    "OpenVINO", "attention with any mask or none", "scores of a head", 9216, no_bound, true,
    "the gain is small", "docs/openvino.md"};
// clang-format on

constexpr const gain& onnxruntime_attention_with(bool mask) {
    return mask ? onnxruntime_masked_attention : onnxruntime_attention;
}

} // namespace gains
} // namespace maskwise::fusion
