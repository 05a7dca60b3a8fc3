// bench_engine select|sweep [first] [count]: time of plan and run against the limit, in turns.

#include "cases.hpp"
#include "limit.hpp"

#include "exec/run_select.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

namespace maskwise::bench {
namespace {

struct free_memory {
    void operator()(std::byte* p) const { std::free(p); }
};
using memory = std::unique_ptr<std::byte, free_memory>;

memory allocate(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>((bytes + 8191) / 4096 * 4096);
    auto* data = static_cast<std::byte*>(std::aligned_alloc(4096, size));
    std::memset(data, 1, size);
    return memory(data);
}

// Wall time; on one thread the thread's own time, so that a busy machine can be measured at all.
double now(bool own_time) {
    timespec t{};
    clock_gettime(own_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds(bool own_time, auto&& work) {
    const double begin = now(own_time);
    work();
    return now(own_time) - begin;
}

std::int64_t stride_at(const tensor_desc& tensor, int d, int rank) {
    const int own = d - (rank - tensor.extents.rank());
    return own < 0 || tensor.extents[own] == 1 ? 0 : tensor.strides_bytes[own];
}

// Cache lines of each source that the mask makes necessary, and of cond.
class line_counter {
public:
    line_counter(const select_desc& desc, const std::byte* cond)
        : desc_(desc), cond_(cond), rank_(desc.dst.extents.rank()) {
        for (int s = 0; s < 3; ++s)
            lines_[s].assign(static_cast<std::size_t>(span_bytes(tensor(s)) / 64 + 1), false);
        visit(0, {0, 0, 0});
    }
    std::int64_t read_bytes() const {
        std::int64_t lines = 0;
        for (const auto& operand : lines_)
            lines += std::count(operand.begin(), operand.end(), true);
        return lines * 64;
    }

private:
    const tensor_desc& tensor(int s) const {
        return s == 0 ? desc_.cond : s == 1 ? desc_.src_0 : desc_.src_1;
    }
    void visit(int d, std::array<std::int64_t, 3> at) {
        if (d == rank_) {
            lines_[0][static_cast<std::size_t>(at[0] / 64)] = true;
            const int side = cond_[at[0]] != std::byte{0} ? 1 : 2;
            lines_[side][static_cast<std::size_t>(at[static_cast<std::size_t>(side)] / 64)] = true;
            return;
        }
        for (std::int64_t i = 0; i < desc_.dst.extents[d]; ++i) {
            visit(d + 1, at);
            for (int s = 0; s < 3; ++s)
                at[static_cast<std::size_t>(s)] += stride_at(tensor(s), d, rank_);
        }
    }
    const select_desc& desc_;
    const std::byte* cond_;
    int rank_;
    std::vector<bool> lines_[3];
};

struct result {
    double fraction;
    double ms;
    double gigabytes_per_second;
    double plain_limit_ms, stream_limit_ms;
    std::string plan;
};

result measure(const bench_case& c, int rounds) {
    std::mt19937_64 random(1);
    const auto plan = make_select_plan(c.desc);
    const memory cond = allocate(span_bytes(c.desc.cond)),
                 src_0 = allocate(span_bytes(c.desc.src_0)),
                 src_1 = allocate(span_bytes(c.desc.src_1)), dst = allocate(span_bytes(c.desc.dst));
    fill_mask(c.mask, c.desc.cond, cond.get(), span_bytes(c.desc.cond), random);
    const std::int64_t read = line_counter(c.desc, cond.get()).read_bytes();
    const std::int64_t written =
        element_count(c.desc.dst.extents) * static_cast<std::int64_t>(width_bytes(c.desc.dst.type));
    const memory from = allocate(read);
    const memory to = allocate(written);
    const limit_pass pass{from.get(), to.get(), read, written};
    const auto run = [&] { run_select(*plan, cond.get(), src_0.get(), src_1.get(), dst.get()); };
    const std::int64_t repeats = std::max<std::int64_t>(1, (4 << 20) / (read + written));
    const auto many = [&](auto&& work) {
        return [&, work] {
            for (std::int64_t i = 0; i < repeats; ++i) work();
        };
    };
    const int threads = std::min<int>(tbb::this_task_arena::max_concurrency(),
                                      static_cast<int>(tbb::global_control::active_value(
                                          tbb::global_control::max_allowed_parallelism)));
    double own = 1e9, limit = 1e9, parts[2] = {1e9, 1e9};
    for (int i = 0; i < rounds; ++i) {
        for (int twice = 0; twice < 2; ++twice) // as the limit, whose passes follow each other
            own = std::min(own, seconds(threads == 1, many(run)));
        for (const bool stream : {false, true})
            for (const int t : {1, threads})
                parts[stream] =
                    std::min(parts[stream],
                             seconds(threads == 1, many([&] { run_limit(pass, stream, t); })));
    }
    limit = std::min(parts[0], parts[1]);
    own /= static_cast<double>(repeats), limit /= static_cast<double>(repeats);
    return {limit / own,
            own * 1e3,
            static_cast<double>(read + written) / own / 1e9,
            parts[0] / static_cast<double>(repeats) * 1e3,
            parts[1] / static_cast<double>(repeats) * 1e3,
            to_string(*plan)};
}

std::string layout(const tensor_desc& tensor) {
    return to_string(tensor.extents) + '@' + to_string(tensor.strides_bytes);
}

void print(const bench_case& c, const result& r) {
    std::printf("%5.2f %9.4f ms %6.1f GB/s (limit plain %8.4f stream %8.4f) %-18s %-7s %-8s %s\n",
                r.fraction, r.ms, r.gigabytes_per_second, r.plain_limit_ms, r.stream_limit_ms,
                c.name.c_str(), std::string(to_string(c.desc.dst.type)).c_str(),
                std::string(to_string(c.mask)).c_str(), r.plan.c_str());
    if (std::getenv("BENCH_LAYOUTS") != nullptr)
        std::printf("      cond %s src_0 %s src_1 %s dst %s\n", layout(c.desc.cond).c_str(),
                    layout(c.desc.src_0).c_str(), layout(c.desc.src_1).c_str(),
                    layout(c.desc.dst).c_str());
    std::fflush(stdout);
}

int run_all(int argc, char** argv) {
    const char* threads = std::getenv("BENCH_THREADS");
    const std::size_t allowed = threads == nullptr ? 1024 : std::strtoull(threads, nullptr, 10);
    const tbb::global_control cap(tbb::global_control::max_allowed_parallelism, allowed);
    const std::string suite = argc > 1 ? argv[1] : "select";
    const int first = argc > 2 ? std::atoi(argv[2]) : 0,
              count = argc > 3 ? std::atoi(argv[3]) : 1000;
    std::vector<double> fractions;
    const auto one = [&](const bench_case& c) {
        const result r = measure(c, 15);
        print(c, r);
        fractions.push_back(r.fraction);
    };
    if (suite == "sweep") {
        for (int i = first; i < first + count; ++i)
            one(sweep_case(static_cast<std::uint64_t>(i), 64 << 20));
    } else {
        const auto cases = select_cases();
        for (int i = first; i < std::min<int>(first + count, static_cast<int>(cases.size())); ++i)
            one(cases[static_cast<std::size_t>(i)]);
    }
    std::sort(fractions.begin(), fractions.end());
    const auto at = [&](std::size_t percent) {
        return fractions[(fractions.size() - 1) * percent / 100];
    };
    std::printf("%zu cases: min %.2f p5 %.2f p25 %.2f median %.2f\n", fractions.size(),
                fractions[0], at(5), at(25), at(50));
    return 0;
}

} // namespace
} // namespace maskwise::bench

int main(int argc, char** argv) {
    return maskwise::bench::run_all(argc, argv);
}
