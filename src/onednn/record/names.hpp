#pragma once

#include <string>

namespace maskwise::onednn {

// oneDNN's name, or the number if oneDNN is newer than the list.
std::string operator_name(int number);
std::string data_type_name(int number);

// oneDNN's name. If oneDNN is newer than the list: "undef" for a property, "unknown" for a mode.
const char* property_name(int number);
const char* fpmath_name(int number);

struct attribute_words {
    std::string name;
    bool is_list; // else the attribute is a single value
};
attribute_words words_of_attribute(int number);

} // namespace maskwise::onednn
