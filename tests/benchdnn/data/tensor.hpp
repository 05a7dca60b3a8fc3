#pragma once

// The oracle's dense, row-major tensors, which own their bytes. This code shares nothing with src/.

#include "model/graph.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::bench {

struct tensor {
    data_type dtype = data_type::undef;
    dims shape;
    std::vector<std::byte> bytes;

    tensor() = default;
    tensor(data_type type, dims extents);

    std::size_t count() const;
    std::size_t width() const { return info(dtype).size; } // bytes per element
};

// Converts to and from doubles. Rounds to nearest even; integers saturate. Throws input_error for
// f8, s4 and u4.
std::vector<double> to_doubles(const tensor& t);
tensor from_doubles(data_type type, dims shape, const std::vector<double>& values);

// Reads or writes the number at `element`.
double load_number(data_type type, const std::byte* element);
void store_number(data_type type, double value, std::byte* element);

// Unit roundoff of a floating type (2^-24 for f32); 0 for other types.
double roundoff(data_type type);

} // namespace maskwise::bench
