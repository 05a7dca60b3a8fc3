#include "fusion/row_chain.hpp"

#include "base/error.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstring>
#include <string>

namespace maskwise::fusion {

void require_offset_term(const tensor_desc& term) {
    if (term.type != data_type::i32 || element_count(term.extents) != 1)
        throw argument_error("a term of the causal mask's offset is " +
                             std::string(to_string(term.type)) + ' ' + to_string(term.extents) +
                             ", expected one i32");
}

std::int64_t offset_of(std::span<const offset_term> terms, std::span<const void* const> addresses) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        if (addresses[i] == nullptr)
            throw argument_error("tensor " + std::to_string(terms[i].tensor.id) + " has no memory");
        std::int32_t value = 0;
        std::memcpy(&value, addresses[i], sizeof(value));
        sum += terms[i].is_subtracted ? -std::int64_t{value} : value;
    }
    return sum;
}

} // namespace maskwise::fusion
