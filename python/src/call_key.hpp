// The plans of recent calls.
#pragma once

#include "request.hpp"

#include "base/recent_plans.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace maskwise::python {

// The numbers that determine a plan. A small Select takes less time than compile(), even if
// the library has cached the plan. So a call first searches for an equal key.
class call_key {
public:
    void push(npy_intp value) {
        fits_ = fits_ && count_ < most_numbers;
        if (!fits_) return;
        numbers_[count_++] = value;
        hash_ = (hash_ ^ static_cast<std::size_t>(value)) * 0x9e3779b97f4a7c15ULL;
    }
    // Rank, extents and strides of an array, or -1 for none.
    void push_layout(nb::handle array_or_none) {
        if (array_or_none.is_none()) return push(-1);
        PyArrayObject* const array = as_array(array_or_none);
        const int rank = PyArray_NDIM(array);
        push(rank);
        for (int i = 0; i < rank; ++i) {
            push(PyArray_DIM(array, i));
            push(PyArray_STRIDE(array, i));
        }
    }

    // Returns false if there are more numbers than the key can store.
    bool fits() const { return fits_; }
    bool operator==(const call_key& other) const {
        return hash_ == other.hash_ && count_ == other.count_ &&
               std::memcmp(numbers_.data(), other.numbers_.data(), count_ * sizeof(npy_intp)) == 0;
    }

private:
    static constexpr std::size_t most_numbers = 80;

    bool fits_ = true;
    std::size_t count_ = 0, hash_ = 0; // hash_ distinguishes most keys without the numbers
    std::array<npy_intp, most_numbers> numbers_;
};

// The plans of a function's last calls. Guarded by the GIL, or by a mutex in free-threaded Python.
template <class Plan>
class recent_calls {
public:
    // Returns the cached plan for the key, or the result of compile(), which may release the GIL.
    template <class Compile>
    Plan find(const call_key& key, const Compile& compile) {
        return key.fits() ? plans_.find(key, compile) : compile();
    }

private:
    recent_plans<call_key, Plan, 64, nb::ft_mutex> plans_;
};

} // namespace maskwise::python
