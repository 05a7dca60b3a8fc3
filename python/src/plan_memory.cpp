#include "plan_memory.hpp"

namespace maskwise::python {

void call_key::push_layout(nb::handle array_or_none) {
    if (array_or_none.is_none()) return push(-1);
    PyArrayObject* const array = as_array(array_or_none);
    const int rank = PyArray_NDIM(array);
    push(rank);
    for (int i = 0; i < rank; ++i) {
        push(PyArray_DIM(array, i));
        push(PyArray_STRIDE(array, i));
    }
}

std::size_t call_key::hash() const {
    std::size_t hash = count_;
    for (std::size_t i = 0; i < count_; ++i)
        hash = (hash ^ static_cast<std::size_t>(numbers_[i])) * 0x9e3779b97f4a7c15ULL;
    return hash >> 32;
}

} // namespace maskwise::python
