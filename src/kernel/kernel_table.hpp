#pragma once

#include "base/cpu.hpp"
#include "kernel/attention_contract.hpp"
#include "kernel/contract.hpp"
#include "kernel/row_contract.hpp"

#include <span>
#include <string>

namespace maskwise {

struct select_key {
    int width_bytes;
    column_class cond, src_0, src_1;
    store_policy store;

    friend bool operator==(const select_key&, const select_key&) = default;
};

struct select_kernel {
    select_key key;
    select_fn run;
};

struct pick_key {
    int width_bytes;
    column_class cond;

    friend bool operator==(const pick_key&, const pick_key&) = default;
};

struct pick_kernel {
    pick_key key;
    pick_fn run;
};

struct pack_key {
    pack_kind kind;
    int unit_bytes;

    friend bool operator==(const pack_key&, const pack_key&) = default;
};

struct pack_kernel {
    pack_key key;
    pack_fn run;
};

// The kernels of one instruction set, in the order of kernel_list.inc.
struct kernel_table {
    isa target;
    std::span<const select_kernel> selects;
    std::span<const pick_kernel> picks;
    std::span<const pack_kernel> packs;
    row_kernels rows;
    attention_kernels attention;
};

// One table for each instruction set compiled in. Running a kernel needs a CPU that supports it.
std::span<const kernel_table* const> kernel_tables();

// The table of exactly that instruction set; throws invalid_argument where none is compiled in.
const kernel_table& kernel_table_for(isa target);

// The entry of the list; every key of the list is in every table. Throws invalid_argument else.
const select_kernel& find_select(const kernel_table& table, const select_key& key);
const pick_kernel& find_pick(const kernel_table& table, const pick_key& key);
const pack_kernel& find_pack(const kernel_table& table, const pack_key& key);

// "select_x32_uuz_stream": bits of an element, classes of cond, src_0, src_1 (u, z), stores.
std::string to_string(const select_key& key);
// "pick_x128_u": bits of an element, class of cond.
std::string to_string(const pick_key& key);
// "gather_4": kind and unit in bytes.
std::string to_string(const pack_key& key);

// Makes streamed stores visible before whatever this thread publishes next.
void finish_streaming();

} // namespace maskwise
