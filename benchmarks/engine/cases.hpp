#pragma once

#include "plan/select_plan.hpp"

#include <random>
#include <string>
#include <vector>

namespace maskwise::bench {

enum class mask_kind { random, causal, padding, ones, runs };

struct bench_case {
    std::string name;
    select_desc desc;
    mask_kind mask = mask_kind::random;
};

std::string_view to_string(mask_kind mask);

// The shape table: real models' Selects.
std::vector<bench_case> select_cases();

// Random ranks, layouts and broadcast classes, sized by their outermost dimension so that about
// `bytes` move.
bench_case sweep_case(std::uint64_t seed, std::int64_t bytes);

// cond's bytes; `columns` and `rows` are dst's last two extents as cond has them.
void fill_mask(mask_kind mask, const tensor_desc& cond, std::byte* data, std::int64_t bytes,
               std::mt19937_64& random);

} // namespace maskwise::bench
