#pragma once

#include "attention_settings.hpp"
#include "attention_work.hpp"

namespace maskwise::ort {

// A call of com.microsoft's MultiHeadAttention. Makes its outputs, and writes those that hold keys
// and values. Throws shape_error and argument_error for what ONNX Runtime refuses.
attention_work begin_multi_head_attention(const runtime& with, const call& at,
                                          const attention_settings& settings,
                                          const parallel_loop& loop);

} // namespace maskwise::ort
