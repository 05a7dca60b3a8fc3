// Reads a TensorIterator, which torch's kernels for CPUs get: the types of its operands are
// promoted, their shapes broadcast, the result's memory is allocated and overlaps are refused.
#pragma once

#include <maskwise/maskwise.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace maskwise::python {

struct torch_iterator; // at::TensorIterator

// Operand 0 is the result. All operands have the iterator's extents, and stride 0 where they
// repeat.
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

// Whether the loaded torch exports the functions that the others here call.
bool can_read_iterators();

std::int64_t element_count(const torch_iterator& iterator);

// None if the iterator has another number of operands, or if the result's type is not one that both
// torch and Maskwise move unchanged: torch normalizes bytes of a boolean to 0 or 1.
std::optional<iterator_operands> read_operands(torch_iterator& iterator, std::size_t count);

} // namespace maskwise::python
