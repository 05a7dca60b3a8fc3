#pragma once

// The names in a case file and their numbers in oneDNN's C API. The numbers never change. The
// harness lists the numbers because its oneDNN headers may lack an operator of a case.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace maskwise::bench {

enum class data_type : int {
    undef = 0,
    f16 = 1,
    bf16 = 2,
    f32 = 3,
    s32 = 4,
    s8 = 5,
    u8 = 6,
    f64 = 7,
    boolean = 8,
    f8_e5m2 = 9,
    f8_e4m3 = 10,
    s4 = 11,
    u4 = 12,
    s64 = 16,
};

struct data_type_info {
    std::string_view name;
    data_type value;
    std::size_t size; // bytes per element; 0 for undef and for types whose elements share a byte
};

enum class attr_type { f32, f32s, s64, s64s, boolean, string };

struct attr_info {
    int value;
    attr_type type;
    int since_minor = 0; // first oneDNN 3.<minor> that has the attribute
};

struct op_kind_info {
    int value;
    int since_minor; // first oneDNN 3.<minor> that accepts the op; older versions may crash
};

// Null or nullopt if the name is unknown.
const data_type_info* find_data_type(std::string_view name);
std::optional<attr_info> find_attr(std::string_view name);
std::optional<op_kind_info> find_op_kind(std::string_view name);

const data_type_info& info(data_type type);
bool is_floating(data_type type);

// The name of a dnnl_status_t in the C header, without the prefix dnnl_.
std::string status_name(int status);
int find_status(std::string_view name); // the status with this name, or -1

} // namespace maskwise::bench
