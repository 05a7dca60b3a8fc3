#pragma once

// A Select by the definition of a dialect, as the words of the command line describe it.

#include "input/case_config.hpp"
#include "model/graph.hpp"

#include <maskwise/maskwise.hpp>

#include <array>
#include <optional>

namespace maskwise::bench {

struct dialect_operand {
    maskwise::data_type type = maskwise::data_type::f32;
    dims shape;
    dims strides; // in elements, any sign
};

struct dialect_case {
    maskwise::dialect form;
    maskwise::auto_broadcast broadcast = maskwise::auto_broadcast::numpy;
    std::array<dialect_operand, 3> inputs; // cond, src_0, src_1: ids 0, 1, 2
    std::optional<dialect_operand> dst;    // id 3; else the library lays it out
};

// Reads --dialect, --dt, --in-shapes and --op-attrs; the types default to boolean and f32. Throws
// input_error on what they do not mean.
dialect_case read_dialect_case(const case_config& config);

// The shape of dst by the dialect's rule, worked out without the library; nullopt where the shapes
// do not fit each other.
std::optional<dims> expected_shape(const dialect_case& c);

maskwise::tensor_desc describe(const dialect_operand& operand);

} // namespace maskwise::bench
