// bench_scaling: attention and Select by the engine's own functions on 1 to N threads, and
// attention on more workers than there are processors, simulated by what each item of work takes.
// Requests:
//   {"do": "load", "case": attention_problem's}, {"do": "load_select", "case": operands' extents}
//   {"do": "time", "threads": [1, 2], "turns": 5, "seconds": 0.05}    median seconds of each, in
//   turns
//   {"do": "simulate", "workers": [2, 64], "turns": 3}                seconds of one, and of each
//   {"do": "record", "workers": 64, "turns": 3}                       seconds of each item

#include "common/serve.hpp"
#include "scaling/simulation.hpp"

#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"
#include "tensor/tensor_desc.hpp"

#include <tbb/task_arena.h>

#include <algorithm>

namespace maskwise::bench {
namespace {

std::function<void()> attention_call(const std::shared_ptr<attention_problem>& problem) {
    return [problem] { problem->execute(nullptr); };
}

// f32; every other row of cond is true.
class select_problem {
public:
    explicit select_problem(const json& from) {
        select_desc desc;
        const auto describe = [&](const char* name, data_type type, std::vector<std::byte>& to) {
            tensor_desc made{type, {}, {}};
            std::size_t bytes = type == data_type::boolean ? 1 : 4;
            for (const json& extent : from.at(name)) {
                made.extents.push_back(extent);
                bytes *= extent.get<std::size_t>();
            }
            to.resize(bytes);
            return with_strides(made);
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
        if (what == "load") return load(request.at("case"));
        if (what == "load_select") return load_select(request.at("case"));
        if (what == "time") return time(request);
        if (what == "simulate") return simulate(request);
        if (what == "record") {
            const recorded made = record(attention(), request.at("workers"), request.at("turns"));
            return {{"phases", made.phases}, {"serial", made.serial}};
        }
        throw std::invalid_argument("unknown request '" + what + "'");
    }

private:
    attention_problem& attention() {
        if (!attention_) throw std::invalid_argument("no attention is loaded");
        return *attention_;
    }

    json load(const json& from) {
        attention_ = nullptr; // before there is more
        call_ = nullptr;
        attention_ = std::make_shared<attention_problem>(from);
        call_ = attention_call(attention_);
        return {{"plan", to_string(attention_->plan())}};
    }

    json load_select(const json& from) {
        const auto problem = std::make_shared<select_problem>(from);
        attention_ = nullptr;
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
        json seconds = json::object(); // as of items, the least: what else runs only adds
        for (std::size_t i = 0; i < threads.size(); ++i)
            seconds[std::to_string(threads[i])] =
                *std::min_element(taken[i].begin(), taken[i].end());
        return seconds;
    }

    // What one worker does is what all of them could save at most.
    json simulate(const json& request) {
        const int turns = request.at("turns");
        json seconds = {{"1", record(attention(), 1, turns).sum()}};
        for (const int workers : request.at("workers"))
            seconds[std::to_string(workers)] =
                record(attention(), workers, turns).simulate(workers);
        return seconds;
    }

    std::shared_ptr<attention_problem> attention_;
    std::function<void()> call_;
};

} // namespace
} // namespace maskwise::bench

int main() {
    maskwise::bench::scaling scaling;
    return maskwise::bench::serve([&](const auto& request) { return scaling.answer(request); });
}
