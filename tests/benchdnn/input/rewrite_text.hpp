#pragma once

// Parses the values of --in-shapes, --op-attrs and similar options.

#include "model/graph.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace maskwise::bench {

struct shape_text {
    std::optional<dims> shape; // unset: only the layout changes
    std::string tag;           // "acb": letters of the dims, outermost first
    dims strides;
};

// Returns the parts between the separators: n separators give n + 1 parts, which may be empty.
std::vector<std::string> split(const std::string& text, char separator);

// Parses "ID:TEXT+ID:TEXT"; empty text has no pairs. `flag` is for the error text.
std::vector<std::pair<std::size_t, std::string>> parse_pairs(const std::string& text,
                                                             const std::string& flag);

std::vector<std::pair<std::size_t, shape_text>> parse_shapes(const std::string& text);

// Parses "NAME:VALUE*NAME:VALUE". The name decides the value's type. Lists have the form "1x2x3".
std::vector<std::pair<std::string, attribute>> parse_attrs(const std::string& text);

property parse_property(const std::string& word);

// Dense strides of `shape` in the physical order of `tag`.
dims strides_of_tag(const dims& shape, const std::string& tag);

} // namespace maskwise::bench
