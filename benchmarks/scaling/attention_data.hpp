#pragma once

#include "common/bench_case.hpp"

#include "attention/run_attention.hpp"

#include <memory>

namespace maskwise::bench {

// An attention as benchmarks/suites/scaling.py describes it, with operands of random numbers:
//   {"query": extents, "key": extents, "dtype": "f32", "rules": {"causal": {}, ...},
//    "cond": path, "bias": path}    arrays of rows x keys; a bias also of heads x rows x keys
class attention_problem {
public:
    // Throws nlohmann::json::exception where a member is missing, std::runtime_error on files.
    explicit attention_problem(const json& from);

    const attention_data& plan() const { return *plan_; }
    // By the library's threads where `loop` is null.
    void execute(const parallel_loop* loop, work_watcher* watcher = nullptr);

private:
    const void* mask(const json& from, const char* name, data_type type, tensor_desc& desc);

    std::vector<std::byte> query_, key_, dst_, cond_, bias_;
    mask_rules rules_;
    attention_operands at_;
    std::shared_ptr<const attention_data> plan_;
    std::unique_ptr<attention_scratch> scratch_;
};

} // namespace maskwise::bench
