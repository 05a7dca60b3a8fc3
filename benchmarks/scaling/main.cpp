// bench_scaling: attention and Select by the engine's own functions on 1 to N threads. Requests:
//   {"do": "load", "case": attention_problem's}, {"do": "load_select", "case": operands' extents}
//   {"do": "time", "threads": [1, 2], "turns": 5, "seconds": 0.05}    least median of each, in
//   turns

#include "common/serve.hpp"

#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"
#include "tensor/tensor_desc.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <random>

namespace maskwise::bench {
namespace {

tensor_desc dense(data_type type, const json& extents) {
    tensor_desc made{type, {}, {}};
    for (const json& extent : extents) made.extents.push_back(extent);
    return with_strides(made);
}

std::size_t count_of(const json& extents) {
    std::size_t count = 1;
    for (const json& extent : extents) count *= extent.get<std::size_t>();
    return count;
}

// An attention of f32 as benchmarks/suites/scaling.py describes it, with operands of random
// numbers:
//   {"query": extents, "key": extents, "rules": {"causal": {}} or {"lengths": {"lengths": 4000}}}
class attention_problem {
public:
    // Throws nlohmann::json::exception if a member is missing.
    explicit attention_problem(const json& from)
        : query_(random_numbers(from.at("query"), 1)), key_(random_numbers(from.at("key"), 2)),
          dst_(query_.size()) {
        attention_desc desc;
        desc.query = dense(data_type::f32, from.at("query"));
        desc.key = desc.value = dense(data_type::f32, from.at("key"));
        desc.grouped_queries = true;
        at_ = {query_.data(), key_.data(), key_.data()};
        at_.dst = dst_.data();
        const json& rules = from.at("rules");
        rules_.causal = rules.contains("causal");
        if (rules.contains("lengths")) {
            const json& lengths = rules.at("lengths").at("lengths");
            if (lengths.is_array())
                rules_.lengths = lengths.get<std::vector<std::int64_t>>();
            else
                rules_.lengths = {lengths.get<std::int64_t>()};
        }
        if (!rules.empty()) at_.rules = &rules_;
        plan_ = make_tile_plan(desc, active_isa());
    }
    attention_problem(const attention_problem&) = delete; // at_ has addresses of members
    attention_problem& operator=(const attention_problem&) = delete;

    void execute() const { run_attention(*plan_, at_, nullptr); }

private:
    static std::vector<float> random_numbers(const json& extents, unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        std::vector<float> made(count_of(extents));
        for (float& number : made) number = normal(random);
        return made;
    }

    std::vector<float> query_, key_, dst_;
    mask_rules rules_;
    attention_operands at_;
    std::shared_ptr<const tile_plan> plan_;
};

// f32; every other row of cond is true.
class select_problem {
public:
    explicit select_problem(const json& from) {
        select_desc desc;
        const auto describe = [&](const char* name, data_type type, std::vector<std::byte>& to) {
            const json& extents = from.at(name);
            to.resize(count_of(extents) * (type == data_type::boolean ? 1 : 4));
            return dense(type, extents);
        };
        desc.cond = describe("cond", data_type::boolean, cond_);
        desc.src_0 = describe("src_0", data_type::f32, src_0_);
        desc.src_1 = describe("src_1", data_type::f32, src_1_);
        desc.dst = describe("dst", data_type::f32, dst_);
        for (std::size_t i = 0; i < cond_.size(); ++i) cond_[i] = std::byte(i / 1024 % 2);
        plan_ = make_select_plan(desc);
    }
    void execute() { run_select(*plan_, cond_.data(), src_0_.data(), src_1_.data(), dst_.data()); }

private:
    std::vector<std::byte> cond_, src_0_, src_1_, dst_;
    std::shared_ptr<const select_plan> plan_;
};

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

class scaling {
public:
    json answer(const json& request) {
        const std::string what = request.at("do");
        if (what == "hello") return {{"version", "engine"}, {"threads", processor_count()}};
        if (what == "load") return load<attention_problem>(request.at("case"));
        if (what == "load_select") return load<select_problem>(request.at("case"));
        if (what == "time") return time(request);
        throw std::invalid_argument("unknown request '" + what + "'");
    }

private:
    template <class Problem>
    json load(const json& from) {
        call_ = nullptr; // before there is more
        const auto problem = std::make_shared<Problem>(from);
        call_ = [problem] { problem->execute(); };
        return json::object();
    }

    json time(const json& request) {
        if (!call_) throw std::invalid_argument("nothing is loaded");
        const std::vector<int> threads = request.at("threads");
        std::vector<std::vector<double>> taken(threads.size());
        for (int turn = 0; turn < request.at("turns"); ++turn)
            for (std::size_t i = 0; i < threads.size(); ++i) {
                tbb::task_arena arena(threads[i]);
                arena.execute([&] {
                    taken[i].push_back(median(take_samples(
                        call_, [] {}, 40, request.at("seconds"))));
                });
            }
        json seconds = json::object(); // the least: what else runs only adds
        for (std::size_t i = 0; i < threads.size(); ++i)
            seconds[std::to_string(threads[i])] =
                *std::min_element(taken[i].begin(), taken[i].end());
        return seconds;
    }

    std::function<void()> call_;
};

} // namespace
} // namespace maskwise::bench

int main() {
    maskwise::bench::scaling scaling;
    return maskwise::bench::serve([&](const auto& request) { return scaling.answer(request); });
}
