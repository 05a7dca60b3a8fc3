#pragma once

#include "report/result.hpp"

#include <nlohmann/json.hpp>

namespace maskwise::bench {

// One object per result: the lines of --serve and the entries of --report.
nlohmann::json to_json(const case_result& result);
case_result result_from_json(const nlohmann::json& entry);

} // namespace maskwise::bench
