#include "support/rule_definition.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace maskwise::test {
namespace {

using values = std::vector<std::int64_t>;

std::int64_t value_of(const values& list, std::int64_t sequence, std::int64_t fallback) {
    if (list.empty()) return fallback;
    return list.size() == 1 ? list[0] : list[static_cast<std::size_t>(sequence)];
}

std::int64_t chunk(std::int64_t place, std::int64_t size) {
    return static_cast<std::int64_t>(
        std::floor(static_cast<double>(place) / static_cast<double>(size)));
}

values draw_values(generator& random, std::int64_t sequences, std::int64_t least,
                   std::int64_t most) {
    values list(static_cast<std::size_t>(one_in(random, 2) ? 1 : sequences));
    for (std::int64_t& value : list) value = draw(random, least, most);
    return list;
}

// Documents in order, some with gaps between them, some without rows or keys.
std::vector<document> draw_documents(generator& random, const rule_shape& shape) {
    std::vector<document> documents;
    const std::int64_t longest = draw(random, 1, 1 + shape.rows);
    for (std::int64_t row = 0, key = 0; row < shape.rows;) {
        const std::int64_t rows = std::min(shape.rows - row, draw(random, 0, longest) + 1);
        document one{row, one_in(random, 20) ? 0 : rows, key, draw(random, 0, longest)};
        if (one_in(random, 10)) one.first_key = draw(random, 0, shape.keys);
        documents.push_back(one);
        row += rows + (one_in(random, 8) ? 2 : 0);
        key = one.first_key + one.keys;
    }
    return documents;
}

std::string text_of(const char* name, const values& list) {
    std::string text;
    for (const std::int64_t value : list) text += ' ' + std::to_string(value);
    return text.empty() ? text : std::string(name) + text + ", ";
}

} // namespace

// nullopt if there are no documents. A row outside all documents gets an empty document.
std::optional<document> document_of(const mask_rules& rules, std::int64_t sequence,
                                    std::int64_t row) {
    if (rules.documents.empty()) return std::nullopt;
    const std::size_t list = rules.documents.size() == 1 ? 0 : static_cast<std::size_t>(sequence);
    const auto& documents = rules.documents[list];
    const auto place = std::ranges::find_if(documents, [&](const document& one) {
        return one.first_row <= row && row < one.first_row + one.rows;
    });
    return place == documents.end() ? document{} : *place;
}

std::int64_t position_of(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence,
                         std::int64_t row) {
    const std::int64_t end = std::min(shape.keys, value_of(rules.lengths, sequence, shape.keys));
    const std::int64_t offset = value_of(rules.offsets, sequence, 0);
    const auto place = document_of(rules, sequence, row);
    if (!place || !rules.in_documents)
        return row + offset + (rules.from_end ? end - shape.rows : 0);
    return row - place->first_row + place->first_key + offset +
           (rules.from_end ? place->keys - place->rows : 0);
}

bool keeps(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence,
           std::int64_t row, std::int64_t key) {
    const std::int64_t start = value_of(rules.starts, sequence, 0);
    const std::int64_t end = std::min(shape.keys, value_of(rules.lengths, sequence, shape.keys));
    if (key < start || key >= end) return false;
    std::int64_t origin = start;
    const std::int64_t position = position_of(rules, shape, sequence, row);
    if (const auto place = document_of(rules, sequence, row)) {
        if (key < place->first_key || key >= place->first_key + place->keys) return false;
        origin = place->first_key;
    }
    if (key - origin < value_of(rules.prefixes, sequence, 0)) return true;
    if (rules.causal && key > position) return false;
    if (rules.chunks) {
        const std::int64_t distance =
            chunk(position - origin, rules.chunks->size) - chunk(key - origin, rules.chunks->size);
        if (distance < 0 || distance > rules.chunks->earlier) return false;
    }
    if (!rules.window) return true;
    const auto [left, right, first_keys] = *rules.window;
    if (key >= origin && key - origin < first_keys) return true;
    return (left < 0 || key >= position - left) && (right < 0 || key <= position + right);
}

mask_rules draw_rules(generator& random, const rule_shape& shape) {
    mask_rules rules;
    const std::int64_t keys = shape.keys, count = shape.sequences;
    const auto around = [&] { return draw(random, 0, one_in(random, 2) ? 9 : keys + 3); };
    rules.causal = one_in(random, 2);
    rules.from_end = one_in(random, 3);
    rules.in_documents = one_in(random, 2);
    if (one_in(random, 3)) rules.offsets = draw_values(random, count, -5, keys + 2);
    if (one_in(random, 3)) rules.window = {around() - 1, around() - 1, 0};
    if (one_in(random, 5)) rules.chunks = {around() + 1, draw(random, 0, 3)};
    if (one_in(random, 6))
        rules.prefixes = draw_values(random, count, 0, keys);
    else if (rules.window && one_in(random, 3))
        rules.window->first_keys = around();
    if (one_in(random, 4)) rules.starts = draw_values(random, count, 0, keys);
    if (one_in(random, 4)) rules.lengths = draw_values(random, count, 0, keys + 2);
    if (!one_in(random, 4)) return rules;
    const std::int64_t lists = one_in(random, 2) ? 1 : shape.sequences;
    for (std::int64_t i = 0; i < lists; ++i)
        rules.documents.push_back(draw_documents(random, shape));
    return rules;
}

std::string to_string(const mask_rules& rules) {
    std::string text = rules.causal ? "causal, " : "";
    if (rules.from_end) text += "from_end, ";
    if (rules.in_documents) text += "in_documents, ";
    if (rules.window)
        text += "window " + std::to_string(rules.window->left) + ' ' +
                std::to_string(rules.window->right) + " first " +
                std::to_string(rules.window->first_keys) + ", ";
    if (rules.chunks)
        text += "chunks " + std::to_string(rules.chunks->size) + ' ' +
                std::to_string(rules.chunks->earlier) + ", ";
    text += text_of("offsets", rules.offsets) + text_of("prefixes", rules.prefixes) +
            text_of("starts", rules.starts) + text_of("lengths", rules.lengths);
    for (const float slope : rules.slopes) text += "slope " + std::to_string(slope) + ", ";
    for (const auto& documents : rules.documents) {
        text += "documents: ";
        for (const document& one : documents)
            text += text_of("", {one.first_row, one.rows, one.first_key, one.keys});
    }
    return text;
}

} // namespace maskwise::test
