// The plans of recent calls.
#pragma once

#include "request.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace maskwise::python {

// The numbers that determine a plan. For few elements, compiling is slow compared to the call, even
// if the library has the plan cached. So a call first compares the numbers that NumPy stores.
class call_key {
public:
    void push(npy_intp value) {
        fits_ = fits_ && count_ < most_numbers;
        if (fits_) numbers_[count_++] = value;
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

    // False if the ranks are too high to store.
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

// Thread-safe: guarded by the GIL, or by a mutex in free-threaded Python.
template <class Plan>
class plan_memory {
public:
    // The cached plan for the key, or the result of compile(), which may release the GIL.
    template <class Compile>
    Plan find(const call_key& key, const Compile& compile) {
        if (!key.fits()) return compile();
        slot& entry = slots_[key.hash() % slots_.size()];
        if (auto plan = find(entry, key)) return *std::move(plan);
        Plan compiled = compile();
        const nb::ft_lock_guard lock(mutex_);
        entry.plan = compiled;
        entry.key = key;
        return compiled;
    }

private:
    struct slot {
        call_key key;
        std::optional<Plan> plan;
    };

    std::optional<Plan> find(const slot& entry, const call_key& key) {
        const nb::ft_lock_guard lock(mutex_);
        return entry.plan && entry.key == key ? entry.plan : std::nullopt;
    }

    nb::ft_mutex mutex_; // empty if there is a GIL
    std::array<slot, 64> slots_;
};

} // namespace maskwise::python
