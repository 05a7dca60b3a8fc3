#pragma once

#include "maskwise/attention.hpp"
#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"
#include "support/numbers.hpp"
#include "support/rule_definition.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::test {

// The library's name of a type that attention and expressions compute with.
constexpr element element_of(data_type type) {
    switch (type) {
    case data_type::boolean:
        return element::boolean;
    case data_type::i8:
        return element::s8;
    case data_type::u8:
        return element::u8;
    case data_type::f16:
        return element::f16;
    case data_type::bf16:
        return element::bf16;
    default:
        return element::f32;
    }
}

// A tensor in memory between guards, and its elements as numbers, row-major.
struct attention_tensor {
    data_type type = data_type::undef;
    view elements;
    guarded_buffer memory;
    std::vector<double> values; // of an input

    bool exists() const { return type != data_type::undef; }
    tensor_desc desc() const;
    // Sets the elements to these values, rounded to the type. `values` become the rounded values.
    void fill(const std::vector<double>& wanted);
    std::vector<double> read() const;
};

struct attention_case {
    attention_desc desc; // of the tensors
    attention_tensor query, key, value, cond, bias, sinks, dst, statistics;
    std::optional<mask_rules> rules;

    void describe(); // brings desc up to date
    attention_operands operands() const;
    extent_list outer() const; // before {rows, columns} of dst
    rule_shape shape() const;
};

struct wanted_attention {
    std::vector<double> dst, statistics;
    // The error bound of f32 sums: a few units in the last place of the sum of absolute values.
    std::vector<double> dst_error, statistics_error;
};

// The definition, in double precision.
wanted_attention expected(const attention_case& problem);
// Whether any row of any head keeps each key, by the rules, and optionally by cond.
std::vector<bool> kept_keys(const attention_case& problem, bool by_cond);

// any: permuted, backward and with gaps. repeated: also with strides of 0, for inputs. turned:
// dense with the last two dimensions transposed.
enum class layout { dense, any, repeated, turned };

// Places a tensor in memory of random bits.
void lay_out(generator& random, attention_tensor& tensor, data_type type,
             const extent_list& extents, layout how);

// Random shapes, masks, layouts and types; `is_small`: a few ten thousand products at most.
attention_case make_attention_case(generator& random, bool is_small = false);

// Dense f32 of these shapes, normally distributed.
attention_case plain_case(const extent_list& query, const extent_list& key,
                          const extent_list& value, unsigned seed);

// Adds a dense bias, or a dense cond, to the case.
void set_bias(attention_case& problem, data_type type, const extent_list& extents,
              const std::vector<double>& bias);
void set_cond(attention_case& problem, const extent_list& extents, const std::vector<double>& keep);

std::vector<std::byte> copy_memory(const attention_tensor& tensor);
// Whether only the tensor's elements changed: `before` with the current elements must equal the
// current memory.
bool is_untouched_around(const attention_tensor& tensor, std::vector<std::byte> before);

using input_memory = std::vector<std::vector<std::byte>>;
input_memory copy_inputs(const attention_case& problem);

// Compares dst and statistics with the expected values. Checks that memory between and around their
// elements is unchanged.
struct output_memory {
    std::vector<std::byte> dst, statistics;
    friend bool operator==(const output_memory&, const output_memory&) = default;
};
output_memory copy_outputs(const attention_case& problem);
// Empty if all is right.
std::string compare(const attention_case& problem, const wanted_attention& wanted,
                    output_memory before);

std::string to_string(const attention_case& problem);

} // namespace maskwise::test
