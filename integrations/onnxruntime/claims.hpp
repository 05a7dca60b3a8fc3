#pragma once

#include "runtime.hpp"

#include <string>

namespace maskwise::ort {

bool is_where(const runtime& with, const abi::node* node);

// "Where-16 f32".
std::string describe_where(const runtime& with, const abi::node* node);

// Why a Where is left to ONNX Runtime's own kernels; empty where it is claimed.
std::string reason_to_refuse(const runtime& with, const abi::node* node);

} // namespace maskwise::ort
