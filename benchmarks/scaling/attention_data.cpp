#include "scaling/attention_data.hpp"

#include "attention/row_spans.hpp"
#include "base/cpu.hpp"
#include "common/memory.hpp"

#include <bit>
#include <cstring>
#include <random>

namespace maskwise::bench {
namespace {

using numbers = std::vector<std::int64_t>;

dims dims_of(const numbers& from) {
    dims made;
    for (const std::int64_t extent : from) made.push_back(extent);
    return made;
}

std::int64_t count_of(const dims& extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    return count;
}

// bf16 by cutting off: numbers are random anyway.
std::vector<std::byte> random_numbers(const tensor_desc& desc, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const std::size_t width = desc.type == data_type::f32 ? 4 : 2;
    std::vector<std::byte> made(static_cast<std::size_t>(count_of(desc.extents)) * width);
    for (std::size_t at = 0; at < made.size(); at += width) {
        const auto bits = std::bit_cast<std::uint32_t>(normal(random)) >> (width == 4 ? 0 : 16);
        std::memcpy(made.data() + at, &bits, width);
    }
    return made;
}

// Keywords of benchmarks/peers/mask_problem.py.
mask_rules rules_of(const json& from) {
    mask_rules rules;
    for (const auto& [name, given] : from.items()) {
        if (name == "causal") rules.causal = true;
        if (name == "causal") rules.from_end = given.value("from_end", false);
        if (name == "window") rules.window = {.left = given.at("left"), .right = given.at("right")};
        if (name == "sliding") rules.causal = true;
        if (name == "sliding")
            rules.window = {.left = given.at("size").get<std::int64_t>() - 1, .right = -1};
        if (name == "chunks") rules.chunks = {given.at("size"), given.at("earlier")};
        if (name == "starts") rules.starts = given.at("starts").get<numbers>();
        if (name == "lengths") {
            const json& lengths = given.at("lengths");
            rules.lengths =
                lengths.is_array() ? lengths.get<numbers>() : numbers{lengths.get<std::int64_t>()};
        }
        if (name != "documents") continue;
        std::int64_t first = 0;
        for (const std::int64_t rows : given.at("sizes").get<numbers>()) {
            rules.documents.resize(1);
            rules.documents[0].push_back({first, rows, first, rows});
            first += rows;
        }
    }
    return rules;
}

} // namespace

const void* attention_problem::mask(const json& from, const char* name, data_type type,
                                    tensor_desc& desc) {
    if (!from.contains(name)) return nullptr;
    std::vector<std::byte>& memory = type == data_type::boolean ? cond_ : bias_;
    desc = {type, dims_of(from.at(name).at("extents")), {}};
    const std::int64_t width = type == data_type::boolean ? 1 : 4;
    memory = read_file(from.at(name).at("path"), count_of(desc.extents) * width);
    return memory.data();
}

attention_problem::attention_problem(const json& from) {
    attention_desc desc;
    const data_type type = from.at("dtype") == "f32" ? data_type::f32 : data_type::bf16;
    desc.query = {type, dims_of(from.at("query")), {}};
    desc.key = desc.value = {type, dims_of(from.at("key")), {}};
    desc.grouped_queries = true;
    query_ = dst_ = random_numbers(desc.query, 1);
    key_ = random_numbers(desc.key, 2);
    at_ = {query_.data(), key_.data(), key_.data()};
    at_.cond = mask(from, "cond", data_type::boolean, desc.cond);
    at_.bias = mask(from, "bias", data_type::f32, desc.bias);
    at_.dst = dst_.data();
    rules_ = rules_of(from.value("rules", json::object()));
    check_rules(rules_, desc.query.extents[0]);
    if (from.contains("rules")) at_.rules = &rules_;
    plan_ = make_attention_plan(desc, active_isa());
}

void attention_problem::execute(const parallel_loop* loop, work_watcher* watcher) {
    run_attention(*plan_, at_, plan_->numbers, loop, scratch_, watcher);
}

} // namespace maskwise::bench
