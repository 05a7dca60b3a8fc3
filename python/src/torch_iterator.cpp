#include "torch_iterator.hpp"

#include "torch_library.hpp"

#include <cstdlib>

namespace maskwise::python {
namespace {

// c10::SmallVector<std::int64_t, 6>, which TensorIterator's methods return by value.
struct small_vector {
    const std::int64_t* first;
    std::uint32_t size;
    std::uint32_t capacity;
    std::int64_t inside[6];

    small_vector(const small_vector&) = delete;
    small_vector& operator=(const small_vector&) = delete;
    ~small_vector() {
        if (first != inside) std::free(const_cast<std::int64_t*>(first));
    }
};

// Methods of at::TensorIterator. The first argument is the object.
struct iterator_functions {
    std::int64_t (*numel)(const torch_iterator*) = nullptr;
    void* (*data_ptr)(const torch_iterator*, std::int64_t operand) = nullptr;
    small_vector (*get_dim_strides)(const torch_iterator*, int dim) = nullptr;
    small_vector (*compatible_stride)(const torch_iterator*, std::int64_t width) = nullptr;
    void* (*maybe_get_output)(torch_iterator*, std::int64_t operand) = nullptr; // an at::Tensor*
    std::int32_t (*get_dtype)(void* tensor, std::int32_t* dtype) = nullptr;

    bool are_complete() const {
        return numel != nullptr && data_ptr != nullptr && get_dim_strides != nullptr &&
               compatible_stride != nullptr && maybe_get_output != nullptr && get_dtype != nullptr;
    }
};

iterator_functions find_functions() {
    iterator_functions loaded;
    void* const library = torch_library();
    if (library == nullptr) return loaded;
    find_symbol(library, "_ZNK2at18TensorIteratorBase5numelEv", loaded.numel);
    find_symbol(library, "_ZNK2at18TensorIteratorBase8data_ptrEl", loaded.data_ptr);
    find_symbol(library, "_ZNK2at18TensorIteratorBase15get_dim_stridesEi", loaded.get_dim_strides);
    find_symbol(library, "_ZNK2at18TensorIteratorBase17compatible_strideEl",
                loaded.compatible_stride);
    find_symbol(library, "_ZN2at14TensorIterator16maybe_get_outputEl", loaded.maybe_get_output);
    find_symbol(library, "aoti_torch_get_dtype", loaded.get_dtype);
    return loaded;
}

const iterator_functions& functions() {
    static const iterator_functions loaded = find_functions();
    return loaded;
}

// `number` is torch's ScalarType.
data_type type_of_torch(std::int32_t number) {
    switch (number) {
    case 0:
        return data_type::u8;
    case 1:
        return data_type::i8;
    case 2:
        return data_type::i16;
    case 3:
        return data_type::i32;
    case 4:
        return data_type::i64;
    case 5:
        return data_type::f16;
    case 6:
        return data_type::f32;
    case 7:
        return data_type::f64;
    case 9:
        return data_type::complex64;
    case 10:
        return data_type::complex128;
    case 15:
        return data_type::bf16;
    default:
        return data_type::undef;
    }
}

data_type result_type(torch_iterator& iterator) {
    std::int32_t number = -1;
    if (functions().get_dtype(functions().maybe_get_output(&iterator, 0), &number) != 0)
        return data_type::undef;
    return type_of_torch(number);
}

// Computes the extents from the strides of a dense tensor of one-byte elements. torch's first
// dimension is the innermost.
dims extents_of(const torch_iterator& iterator) {
    const small_vector dense = functions().compatible_stride(&iterator, 1);
    dims extents;
    std::int64_t outer = element_count(iterator);
    for (std::uint32_t i = dense.size; i-- > 0; outer = dense.first[i])
        extents.push_back(outer / dense.first[i]);
    return extents;
}

} // namespace

bool can_read_iterators() {
    return functions().are_complete();
}

std::int64_t element_count(const torch_iterator& iterator) {
    return functions().numel(&iterator);
}

std::optional<iterator_operands> read_operands(torch_iterator& iterator, std::size_t count) {
    iterator_operands operands;
    operands.type = result_type(iterator);
    if (operands.type == data_type::undef || element_count(iterator) == 0) return std::nullopt;
    operands.extents = extents_of(iterator);
    for (int dim = operands.extents.rank(); dim-- > 0;) {
        const small_vector strides = functions().get_dim_strides(&iterator, dim);
        if (strides.size != count) return std::nullopt;
        for (std::size_t i = 0; i < count; ++i)
            operands.strides_bytes[i].push_back(strides.first[i]);
    }
    for (std::size_t i = 0; i < count; ++i)
        operands.addresses[i] =
            static_cast<std::byte*>(functions().data_ptr(&iterator, static_cast<std::int64_t>(i)));
    return operands;
}

} // namespace maskwise::python
