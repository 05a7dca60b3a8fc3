#pragma once

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "kernel/attention/contract.hpp"
#include "kernel/rows/contract.hpp"
#include "kernel/select/contract.hpp"

#include <span>
#include <string>

namespace maskwise {

struct select_key {
    int width_bytes;
    column_class cond, src_0, src_1;
    store_policy store;

    friend bool operator==(const select_key&, const select_key&) = default;
};

struct pick_key {
    int width_bytes;
    column_class cond;

    friend bool operator==(const pick_key&, const pick_key&) = default;
};

struct pack_key {
    access_kind kind;
    int unit_bytes;

    friend bool operator==(const pack_key&, const pack_key&) = default;
};

template <class Key, class Run>
struct kernel_entry {
    Key key;
    Run run;
};
using select_kernel = kernel_entry<select_key, select_fn>;
using pick_kernel = kernel_entry<pick_key, pick_fn>;
using pack_kernel = kernel_entry<pack_key, pack_fn>;

// The kernels of one instruction set, in the order of kernel_list.inc. Only bf16 products and their
// preparation may differ from the kernels of `base`.
struct kernel_table {
    isa target, base;
    std::span<const select_kernel> selects;
    std::span<const pick_kernel> picks;
    std::span<const pack_kernel> packs;
    row_kernels rows;
    attention_kernels attention;
    // Kernels for panels of four queries and of one query. In scalar tables, these are null.
    attention_kernels attention_panel_of_4, attention_panel_of_1;
};

// Returns a table per compiled instruction set. Callers must run only kernels that the CPU
// supports.
__attribute__((visibility("default"))) std::span<const kernel_table* const> kernel_tables();

// Returns the table of exactly this instruction set. Throws argument_error if there is no table.
// AMX products also need may_use_tiles().
const kernel_table& kernel_table_for(isa target);

// "select_x32_uuz_stream": bits of an element; classes of cond, src_0 and src_1 (u: unit, z: zero);
// stores.
std::string to_string(const select_key& key);
// "pick_x128_u": bits of an element, class of cond.
std::string to_string(const pick_key& key);
// "gather_4": kind and unit in bytes.
std::string to_string(const pack_key& key);
std::string_view to_string(access_kind kind);

// Returns the entry with this key. Every table has all keys of kernel_list.inc. Throws
// argument_error for any other key.
template <class Entry>
const Entry& find_kernel(std::span<const Entry> entries, const decltype(Entry::key)& key) {
    for (const Entry& entry : entries)
        if (entry.key == key) return entry;
    throw argument_error("no kernel " + to_string(key));
}

// Orders streamed stores before later stores of this thread.
void finish_streaming();

} // namespace maskwise
