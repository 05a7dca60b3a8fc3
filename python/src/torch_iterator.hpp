// Reads a TensorIterator, the argument of torch's CPU kernels. torch has already promoted types,
// broadcast shapes, allocated the result and refused most overlaps.
#pragma once

#include <maskwise/maskwise.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace maskwise::python {

struct torch_iterator; // at::TensorIterator

// Operand 0 is the result. All operands have the iterator's extents. A broadcast dimension
// has stride 0.
struct iterator_operands {
    static constexpr std::size_t most = 4;

    data_type type = data_type::undef; // of the result
    dims extents;
    std::array<dims, most> strides_bytes;
    std::array<std::byte*, most> addresses;

    tensor_desc desc(std::size_t operand, data_type of_type) const {
        return {of_type, extents, strides_bytes[operand]};
    }
};

// Whether the loaded torch exports the functions that read_operands calls.
bool can_read_iterators();

std::int64_t element_count(const torch_iterator& iterator);

// Returns nullopt if the iterator has another number of operands or no elements, or if the result's
// type is not supported. Booleans are not supported, because torch normalizes them to 0 or 1.
std::optional<iterator_operands> read_operands(torch_iterator& iterator, std::size_t count);

} // namespace maskwise::python
