// The plans of recent calls.
#pragma once

#include "request.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace maskwise::python {

// The numbers that decide a plan. Compiling is dear beside a call on few elements, even where the
// library keeps the plan: so the numbers that NumPy keeps are compared first, as they are.
class call_key {
public:
    void push(npy_intp value) {
        fits_ = fits_ && count_ < most_numbers;
        if (fits_) numbers_[count_++] = value;
    }
    // Rank, extents and strides of an array, or that there is none.
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

    // False where the ranks are too high to be kept.
    bool fits() const { return fits_; }
    std::size_t hash() const {
        std::size_t hash = count_;
        for (std::size_t i = 0; i < count_; ++i)
            hash = (hash ^ static_cast<std::size_t>(numbers_[i])) * 0x9e3779b97f4a7c15ULL;
        return hash >> 32;
    }
    bool operator==(const call_key& other) const {
        return count_ == other.count_ &&
               std::memcmp(numbers_.data(), other.numbers_.data(), count_ * sizeof(npy_intp)) == 0;
    }

private:
    static constexpr std::size_t most_numbers = 80;

    bool fits_ = true;
    std::size_t count_ = 0;
    std::array<npy_intp, most_numbers> numbers_;
};

// For any thread: the GIL guards it, and where there is none, a mutex.
template <class Plan>
class plan_memory {
public:
    // The plan of the last call with this key, or what compile() returns or throws; that may hand
    // the GIL over.
    template <class Compile>
    Plan find(const call_key& key, const Compile& compile) {
        if (!key.fits()) return compile();
        slot& at = slots_[key.hash() % slots_.size()];
        if (auto found = find(at, key)) return *std::move(found);
        Plan made = compile();
        const nb::ft_lock_guard lock(mutex_);
        at.found = made;
        at.key = key;
        return made;
    }

private:
    struct slot {
        call_key key;
        std::optional<Plan> found;
    };

    std::optional<Plan> find(const slot& at, const call_key& key) {
        const nb::ft_lock_guard lock(mutex_);
        return at.found && at.key == key ? at.found : std::nullopt;
    }

    nb::ft_mutex mutex_; // nothing where there is a GIL
    std::array<slot, 64> slots_;
};

} // namespace maskwise::python
