// What module.cpp gives to Python, beside its own C entries.
#pragma once

#include "request.hpp"

#include <maskwise/attention.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace maskwise::python {

// where(): numpy.where's answer for a request that is not way::numpy. `out` is none, or takes the
// result and is returned. Throws nb::python_error (ValueError, TypeError), or maskwise::error where
// out's layout cannot be written; nothing is written then. Releases the GIL while elements are
// moved.
nb::object run(const request& of, nb::handle out);

// The plan of a request for way::plan; its result is allocated for it.
plan plan_of(const request& of);

// select(): dst = cond ? src_0 : src_1 for exact NumPy arrays, by a dialect's own rules: no
// promotion, a boolean cond, the dialect's types and broadcast. The dialect comes by its number.
// Returns a new row-major array. Throws maskwise::shape_error, and nb::python_error (TypeError,
// ValueError).
nb::object select(nb::handle cond, nb::handle src_0, nb::handle src_1, bool broadcasts,
                  int dialect_number);

// A maskwise._call.AttentionCall for the core. Arrays are exact NumPy arrays; out may be of a
// subclass. mask, sinks and out may be none.
struct attention_call {
    nb::handle q, k, v, mask, sinks, out;
    const mask_rules* rules = nullptr; // null: none
    const mask_maps* maps = nullptr;   // null: mask may have changed
    // None, or torch's: computes on its threads, where there are, and makes results: called with
    // extents, strides in elements and the name of a dtype, it returns a tensor.
    nb::handle torch_empty;
    bool is_causal = false;
    std::optional<double> scale;
    double soft_cap = 0;
    bool enable_gqa = false;
    bool returns_statistics = false;
};

// Returns out, or a new array, and statistics, or none. Throws nb::python_error (TypeError,
// ValueError) and maskwise::error; nothing is written then. Releases the GIL while it computes.
nb::tuple attention(const attention_call& of);

// The tiles of a call: all, full, mixed, deferred, skipped; and the plan in words.
nb::tuple explain_attention(const attention_call& of);

// Adds the classes of which Python's Mask is made: Rules and Maps.
void add_mask(nb::module_& module);

// A read-only NumPy array over the memory of any object with __dlpack__, bfloat16 included (as
// bfloat16_bits()); it keeps that memory alive. Throws nb::python_error: BufferError where the
// memory is not the CPU's, TypeError for types that NumPy does not have, and what the library
// itself refuses with (torch: BufferError for what requires a gradient).
nb::object view_of(nb::handle foreign);

// A writable NumPy array over memory that `owner` keeps alive. Strides are in elements. The caller
// answers for the address.
nb::object view_at(std::uintptr_t address, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& strides, nb::object dtype, nb::object owner);

// An object with __dlpack__ over a NumPy array's memory, bfloat16 included
// (numpy.ndarray.__dlpack__ refuses it).
nb::object exported(nb::handle array);

} // namespace maskwise::python
