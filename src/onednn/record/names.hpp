#pragma once

#include <string>

namespace maskwise::onednn {

// oneDNN's name, or the number if oneDNN is newer than the list.
std::string operator_name(int number);
std::string data_type_name(int number);

// "undef" and "unknown" if oneDNN is newer.
const char* property_name(int number);
const char* fpmath_name(int number);

struct attribute_words {
    std::string name;
    bool is_list; // else it is one number
};
attribute_words words_of_attribute(int number);

} // namespace maskwise::onednn
