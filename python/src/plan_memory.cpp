#include "plan_memory.hpp"

#include <cstring>
#include <optional>

namespace maskwise::python {
namespace {

// maskwise::compile keeps its plans, too, but for arrays of a few elements describing the operands
// and asking for the plan cost more than the Select. So the numbers that NumPy keeps are compared
// first, as they are.
constexpr std::size_t most_numbers = 80;
constexpr std::size_t slots = 64;

struct call_key {
    std::size_t count = 0;
    std::array<npy_intp, most_numbers> numbers;

    void push(npy_intp value) { numbers[count++] = value; }
    bool operator==(const call_key& other) const {
        return count == other.count &&
               std::memcmp(numbers.data(), other.numbers.data(), count * sizeof(npy_intp)) == 0;
    }
    std::size_t slot() const {
        std::size_t hash = count;
        for (std::size_t i = 0; i < count; ++i)
            hash = (hash ^ static_cast<std::size_t>(numbers[i])) * 0x9e3779b97f4a7c15ULL;
        return hash >> 32 & (slots - 1);
    }
};

struct slot {
    call_key key;
    std::optional<plan> found;
};

// False where the ranks are too high to be kept.
bool make_key(call_key& key, std::initializer_list<nb::handle> operands, data_type type) {
    key.push(static_cast<npy_intp>(type));
    for (const nb::handle operand : operands) {
        PyArrayObject* const array = as_array(operand);
        const int rank = PyArray_NDIM(array);
        if (key.count + 1 + 2 * static_cast<std::size_t>(rank) > most_numbers) return false;
        key.push(rank);
        for (int i = 0; i < rank; ++i) {
            key.push(PyArray_DIM(array, i));
            key.push(PyArray_STRIDE(array, i));
        }
    }
    return true;
}

plan compile_for(nb::handle condition, nb::handle x, nb::handle y, nb::handle dst, data_type type) {
    return compile(dialect::onnx_where_16, describe(condition, data_type::boolean),
                   describe(x, type), describe(y, type), describe(dst, type));
}

} // namespace

plan find_plan(nb::handle condition, nb::handle x, nb::handle y, nb::handle dst, data_type type) {
    static std::array<slot, slots> recent; // guarded by the GIL
    call_key key;
    if (!make_key(key, {condition, x, y, dst}, type))
        return compile_for(condition, x, y, dst, type);
    slot& at = recent[key.slot()];
    if (!at.found || !(at.key == key)) {
        at.found.reset();
        at.found = compile_for(condition, x, y, dst, type);
        at.key = key;
    }
    return *at.found;
}

} // namespace maskwise::python
