#pragma once

#include "attention_settings.hpp"
#include "attention_work.hpp"

namespace maskwise::ort {

// A call of com.microsoft's GroupQueryAttention. Makes its outputs, and writes those that hold keys
// and values. Throws shape_error and argument_error for what ONNX Runtime refuses, and for numbers
// with which it would read or write outside.
attention_work begin_group_query_attention(const runtime& with, const call& at,
                                           const attention_settings& settings,
                                           const parallel_loop& loop);

} // namespace maskwise::ort
