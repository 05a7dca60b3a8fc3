#include "base/cache.hpp"
#include "base/first_use.hpp"
#include "base/verbose.hpp"
#include "plan/select_plan.hpp"

#include <functional>
#include <mutex>
#include <pthread.h>
#include <unordered_map>

namespace maskwise {
namespace {

// Plans hold a few kilobytes each; a program with more live shapes than this compiles some again.
constexpr std::size_t most_plans = 1024;

struct desc_hash {
    static std::size_t mix(std::size_t seed, std::int64_t value) {
        return (seed ^ static_cast<std::size_t>(value)) * 0x9e3779b97f4a7c15ULL + (seed >> 29);
    }
    static std::size_t of(std::size_t seed, const tensor_desc& tensor) {
        seed = mix(seed, static_cast<std::int64_t>(tensor.type));
        for (const std::int64_t extent : tensor.extents) seed = mix(seed, extent);
        for (const std::int64_t stride : tensor.strides_bytes) seed = mix(seed, stride);
        return seed;
    }
    std::size_t operator()(const select_desc& desc) const {
        return of(of(of(of(0, desc.cond), desc.src_0), desc.src_1), desc.dst);
    }
};

struct plan_cache {
    std::mutex mutex;
    // By the description that is in the plan.
    std::unordered_map<std::reference_wrapper<const select_desc>,
                       std::shared_ptr<const select_plan>, desc_hash, std::equal_to<select_desc>>
        plans;
};

// A fork may be the first call, and could not report a failed allocation. None is needed here.
plan_cache& cache() {
    return at_first_use<[] { return plan_cache(); }>();
}

// A fork waits for the lock. Otherwise the child could inherit a lock whose owner it lacks.
[[maybe_unused]] const int watching_forks = pthread_atfork(
    [] { cache().mutex.lock(); }, [] { cache().mutex.unlock(); }, [] { cache().mutex.unlock(); });

std::shared_ptr<const select_plan> find_plan(const select_desc& desc) {
    const std::lock_guard lock(cache().mutex);
    const auto cached = cache().plans.find(desc);
    return cached == cache().plans.end() ? nullptr : cached->second;
}

void keep_plan(std::shared_ptr<const select_plan> plan) {
    const std::lock_guard lock(cache().mutex);
    auto& plans = cache().plans;
    if (plans.size() >= most_plans) plans.erase(plans.begin());
    const select_desc& desc = plan->desc;
    plans.emplace(desc, std::move(plan));
}

} // namespace

std::shared_ptr<const select_plan> make_select_plan(const select_desc& desc) {
    if (auto known = find_plan(desc)) return known;
    auto plan = build_plan(desc, active_isa(), stream_threshold_bytes());
    if (verbose_level() >= 2) print_verbose("plan," + to_string(*plan));
    keep_plan(plan);
    return plan;
}

std::shared_ptr<const select_plan> make_copy_plan(const tensor_desc& from, const tensor_desc& to) {
    return make_select_plan({{data_type::boolean, {}, {}}, from, from, to});
}

} // namespace maskwise
