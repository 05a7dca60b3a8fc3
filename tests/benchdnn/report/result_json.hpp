#pragma once

#include "report/result.hpp"

#include <nlohmann/json.hpp>

namespace maskwise::bench {

// A result in the form that --serve prints and --report lists.
nlohmann::json to_json(const case_result& result);
case_result result_from_json(const nlohmann::json& entry);

} // namespace maskwise::bench
