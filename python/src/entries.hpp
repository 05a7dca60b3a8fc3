// The functions that module.cpp exports to Python.
#pragma once

#include "request.hpp"

#include <maskwise/attention.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace maskwise::python {

// where(): computes numpy.where's result for a request that is not way::numpy. Returns `out`, or a
// new array if `out` is none. Throws nb::python_error (ValueError, TypeError), or maskwise::error
// if out's layout cannot be written. Throws before the first write, unless a NumPy cast fails.
// Releases the GIL while it moves elements.
nb::object run(const request& call, nb::handle out);

// Returns the plan of a way::plan request. Allocates a result to get its layout.
plan plan_of(const request& call);

// select(): dst = cond ? src_0 : src_1 for exact NumPy arrays, by the rules of a dialect: no
// promotion, a boolean cond, the dialect's types and broadcast. Returns a new row-major array.
// Throws maskwise::shape_error, and nb::python_error (TypeError, ValueError).
nb::object select(nb::handle cond, nb::handle src_0, nb::handle src_1, bool broadcasts,
                  int dialect_number);

// A Mask's rules, and the number of heads that the slopes are for.
struct shaped_rules : mask_rules {
    std::int64_t slope_heads = 0;
};

// Throws nb::python_error (ValueError) if there are slopes for another number of heads.
void require_slope_heads(const shaped_rules& rules, std::int64_t heads);

// A maskwise._call.AttentionCall for the core. Arrays are exact NumPy arrays; out may be a
// subclass. mask, sinks, out and page_table may be none.
struct attention_call {
    nb::object q, k, v, mask, sinks, out;
    nb::object page_table;               // int32
    const shaped_rules* rules = nullptr; // null: no rules
    const mask_maps* maps = nullptr;     // null: mask may have changed since the last call
    // Results are torch tensors, and attention runs on torch's threads if torch_loop() finds them.
    bool on_torch = false;
    std::optional<double> scale;
    double soft_cap = 0;
    bool enable_gqa = false;
    bool returns_statistics = false;
    bool deterministic = false;
    // q, k, v, out and the result are (rows, heads, depth) instead of (heads, rows, depth).
    bool is_packed = false;
};

// Returns out or a new array; with returns_statistics, a pair of the result and the statistics.
// Throws nb::python_error (TypeError, ValueError) and maskwise::error before the first write.
// Releases the GIL while it computes.
nb::object attention(const attention_call& call);

// A call, its result and statistics, and the result's gradient.
struct gradients_call {
    attention_call attention;
    nb::object result, statistics, gradient;
    bool wants_mask = false, wants_sinks = false;
};

// Returns the gradients of query, key, value, mask and sinks. The first three have the operands'
// types and the result's leading dimensions. The last two are float32, or none if not wanted.
// Throws as attention() does.
nb::object attention_gradients(const gradients_call& call);

// Returns the tile counts of a call (all, full, mixed, deferred, skipped) and the text of its plan.
nb::object explain_attention(const attention_call& call);

// Adds the classes Rules and Maps, the native parts of Python's Mask.
void add_mask(nb::module_& module);

// Returns a read-only NumPy array over the memory of an object with __dlpack__. The array keeps the
// memory alive. bfloat16 becomes bfloat16_bits(). Throws nb::python_error: BufferError if the
// memory is not on the CPU, TypeError for types that NumPy lacks, and the library's own errors
// (torch: BufferError for a tensor that requires a gradient).
nb::object view_of(nb::handle foreign);

// Returns a writable NumPy array over memory that `owner` keeps alive. Strides are in elements. The
// address is not checked.
nb::object view_at(std::uintptr_t address, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& strides, nb::object dtype, nb::object owner);

// Returns a read-only NumPy array over a torch tensor's memory. Returns an unset object if the
// value is not exactly a torch.Tensor or torch.nn.Parameter, if the elements are not in CPU memory,
// if torch negates the elements when it reads them, or if attention does not support the dtype.
// With `refuses_gradients`, also if the tensor requires a gradient. Throws nothing for such values.
nb::object view_of_tensor(nb::handle value, bool refuses_gradients);

// Returns the address of a CPU torch tensor's elements. Throws torch's error if there is none.
void* data_of_tensor(nb::handle tensor);

// Returns an object with __dlpack__ over a NumPy array's memory. Supports bfloat16, which
// numpy.ndarray.__dlpack__ refuses.
nb::object exported(nb::handle array);

} // namespace maskwise::python
