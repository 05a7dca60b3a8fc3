#pragma once

#include "attention_settings.hpp"
#include "attention_work.hpp"

namespace maskwise::ort {

// Before 1.28 ONNX Runtime's Attention masked by the lowest number only, so that a row without a
// key that counts was the mean of all values, and added the mask in front of the soft cap.
inline bool masks_by_lowest(const runtime& with) {
    constexpr int first_other = 28;
    return with.minor < first_other;
}

// A call of ONNX's Attention of the opsets 23 and 24. Makes its outputs, and writes those that hold
// keys and values. Throws shape_error and argument_error for what ONNX Runtime refuses.
attention_work begin_onnx_attention(const runtime& with, const call& at,
                                    const attention_settings& settings, const parallel_loop& loop);

} // namespace maskwise::ort
