#include "input/rewrite_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace maskwise::bench {
std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

namespace {

template <typename T>
T parse_value(const std::string& text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw input_error(fmt::format("'{}' is not a number", text));
    return value;
}

template <typename T>
std::vector<T> parse_values(const std::string& text) {
    std::vector<T> values;
    for (const std::string& part : split(text, 'x')) values.push_back(parse_value<T>(part));
    return values;
}

dims parse_dims(const std::string& text) {
    if (text == "-") return {};
    dims shape = parse_values<std::int64_t>(text);
    if (std::any_of(shape.begin(), shape.end(), [](auto d) { return d < 0; }))
        throw input_error(fmt::format("'{}' has a negative extent", text));
    return shape;
}

bool is_tag(const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::islower(c) != 0 && c != 'x';
    });
}

shape_text parse_shape(const std::string& text) {
    shape_text result;
    if (is_tag(text)) {
        result.tag = text;
        return result;
    }
    const std::size_t star = text.find('*');
    if (star != 0) result.shape = parse_dims(text.substr(0, star));
    if (star == std::string::npos) return result;
    const std::string layout = text.substr(star + 1);
    if (is_tag(layout))
        result.tag = layout;
    else
        result.strides = parse_values<std::int64_t>(layout);
    return result;
}

attribute parse_attr_value(attr_type type, const std::string& text) {
    switch (type) {
    case attr_type::f32:
        return parse_value<float>(text);
    case attr_type::f32s:
        return parse_values<float>(text);
    case attr_type::s64:
        return parse_value<std::int64_t>(text);
    case attr_type::s64s:
        return parse_values<std::int64_t>(text);
    case attr_type::string:
        return text;
    case attr_type::boolean:
        break;
    }
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    throw input_error(fmt::format("'{}' is not true or false", text));
}

} // namespace

std::vector<std::pair<std::size_t, std::string>> parse_pairs(const std::string& text,
                                                             const std::string& flag) {
    std::vector<std::pair<std::size_t, std::string>> pairs;
    if (text.empty()) return pairs;
    for (const std::string& part : split(text, '+')) {
        const std::size_t colon = part.find(':');
        if (colon == std::string::npos)
            throw input_error(fmt::format("--{}: '{}' is not ID:VALUE", flag, part));
        pairs.emplace_back(parse_value<std::size_t>(part.substr(0, colon)), part.substr(colon + 1));
    }
    return pairs;
}

std::vector<std::pair<std::size_t, shape_text>> parse_shapes(const std::string& text) {
    std::vector<std::pair<std::size_t, shape_text>> shapes;
    for (const auto& [id, value] : parse_pairs(text, "in-shapes"))
        shapes.emplace_back(id, parse_shape(value));
    return shapes;
}

std::vector<std::pair<std::string, attribute>> parse_attrs(const std::string& text) {
    std::vector<std::pair<std::string, attribute>> attrs;
    for (const std::string& part : split(text, '*')) {
        const std::size_t colon = part.find(':');
        const std::string name = part.substr(0, colon);
        if (colon == std::string::npos)
            throw input_error(fmt::format("--op-attrs: '{}' is not NAME:VALUE", part));
        const auto known = find_attr(name);
        if (!known) throw input_error(fmt::format("--op-attrs: unknown attribute '{}'", name));
        attrs.emplace_back(name, parse_attr_value(known->type, part.substr(colon + 1)));
    }
    return attrs;
}

property parse_property(const std::string& word) {
    if (word == "undef") return property::undef;
    if (word == "variable") return property::variable;
    if (word == "constant") return property::constant;
    if (word == "host_scalar") return property::host_scalar;
    throw input_error(fmt::format("unknown property '{}'", word));
}

dims strides_of_tag(const dims& shape, const std::string& tag) {
    std::string letters = tag;
    std::sort(letters.begin(), letters.end());
    for (std::size_t i = 0; i < letters.size(); ++i)
        if (letters.size() != shape.size() || letters[i] != static_cast<char>('a' + i))
            throw input_error(fmt::format("tag '{}' does not fit shape {}", tag, to_text(shape)));
    dims strides(shape.size(), 1);
    std::int64_t step = 1;
    for (std::size_t i = tag.size(); i-- > 0;) {
        const auto dim = static_cast<std::size_t>(tag[i] - 'a');
        strides[dim] = step;
        step *= std::max<std::int64_t>(shape[dim], 1);
    }
    return strides;
}

} // namespace maskwise::bench
