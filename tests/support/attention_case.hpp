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

// The oracle's type for Maskwise's type. Types without a case become f32.
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

// A tensor in memory between guard pages. `values`: an input's elements as numbers, row-major.
struct attention_tensor {
    data_type type = data_type::undef;
    view elements;
    guarded_buffer memory;
    std::vector<double> values;

    bool exists() const { return type != data_type::undef; }
    tensor_desc desc() const;
    // Sets the elements to `wanted`, rounded to the type, and `values` to the rounded numbers.
    void fill(const std::vector<double>& wanted);
    std::vector<double> read() const;
};

struct attention_case {
    attention_desc desc; // describes the tensors below after describe()
    attention_tensor query, key, value, cond, bias, sinks, dst, statistics;
    std::optional<mask_rules> rules;

    void describe(); // updates desc
    attention_operands operands() const;
    extent_list outer() const; // dst's extents before {rows, columns}
    rule_shape shape() const;
};

struct wanted_attention {
    std::vector<double> dst, statistics;
    // Bounds of the error before the result is rounded, from f32 sums and from weights in bf16.
    std::vector<double> dst_error, statistics_error;
};

// The result by the definition, in double precision.
wanted_attention expected(const attention_case& problem);
// Returns for each key whether the key is unmasked in any row of any head. Applies the rules; with
// `by_cond`, also cond.
std::vector<bool> kept_keys(const attention_case& problem, bool by_cond);

// dense: row-major. any: may be permuted, backward or with gaps. repeated: for inputs; like any,
// but strides may be 0. transposed: dense, but the last two dimensions are swapped in memory.
enum class layout { dense, any, repeated, transposed };

// Places a tensor in memory of random bits.
void lay_out(generator& random, attention_tensor& tensor, data_type type,
             const extent_list& extents, layout how);

// Draws random shapes, masks, layouts and types. `is_small`: at most 70 rows and keys, rarely up to
// 1200 keys.
attention_case make_attention_case(generator& random, bool is_small = false);

// A case of dense f32 tensors of these shapes. Inputs are normally distributed.
attention_case plain_case(const extent_list& query, const extent_list& key,
                          const extent_list& value, unsigned seed);

// Add a dense bias or cond to the case.
void set_bias(attention_case& problem, data_type type, const extent_list& extents,
              const std::vector<double>& bias);
void set_cond(attention_case& problem, const extent_list& extents, const std::vector<double>& keep);

std::vector<std::byte> copy_memory(const attention_tensor& tensor);
// Whether only the tensor's elements changed: `before` with the current elements must equal the
// current memory.
bool is_untouched_around(const attention_tensor& tensor, std::vector<std::byte> before);

using input_memory = std::vector<std::vector<std::byte>>;
input_memory copy_inputs(const attention_case& problem);

// The memory of dst and statistics, with the bytes between and around their elements.
struct output_memory {
    std::vector<std::byte> dst, statistics;
    friend bool operator==(const output_memory&, const output_memory&) = default;
};
output_memory copy_outputs(const attention_case& problem);
// Compares dst and statistics with `wanted`, and checks that memory between and around their
// elements is as in `before`. Returns a description of the fault, or "".
std::string compare(const attention_case& problem, const wanted_attention& wanted,
                    output_memory before);

std::string to_string(const attention_case& problem);

} // namespace maskwise::test
