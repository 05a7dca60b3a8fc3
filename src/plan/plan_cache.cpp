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

// A plan takes a few kilobytes. At this limit, a new plan evicts an arbitrary one.
constexpr std::size_t most_plans = 1024;

struct desc_hash {
    static std::size_t mix(std::size_t seed, std::int64_t value) {
        return (seed ^ static_cast<std::size_t>(value)) * 0x9e3779b97f4a7c15ULL + (seed >> 29);
    }
    static std::size_t hash_tensor(std::size_t seed, const tensor_desc& tensor) {
        seed = mix(seed, static_cast<std::int64_t>(tensor.type));
        for (const std::int64_t extent : tensor.extents) seed = mix(seed, extent);
        for (const std::int64_t stride : tensor.strides_bytes) seed = mix(seed, stride);
        return seed;
    }
    std::size_t operator()(const select_desc& desc) const {
        return hash_tensor(
            hash_tensor(hash_tensor(hash_tensor(0, desc.cond), desc.src_0), desc.src_1), desc.dst);
    }
};

struct plan_cache {
    std::mutex mutex;
    // The key is the description inside the plan.
    std::unordered_map<std::reference_wrapper<const select_desc>,
                       std::shared_ptr<const select_plan>, desc_hash, std::equal_to<select_desc>>
        plans;
};

// Must not allocate: the fork handlers below may be the first callers, and a fork handler cannot
// report a failure.
plan_cache& cache() {
    return at_first_use<[] { return plan_cache(); }>();
}

// fork() holds the mutex. Else another thread could hold the mutex during the fork. The child's
// copy would then stay locked, because the child lacks that thread.
[[maybe_unused]] const int watching_forks = pthread_atfork(
    [] { cache().mutex.lock(); }, [] { cache().mutex.unlock(); }, [] { cache().mutex.unlock(); });

std::shared_ptr<const select_plan> find_plan(const select_desc& desc) {
    const std::lock_guard lock(cache().mutex);
    const auto cached = cache().plans.find(desc);
    return cached == cache().plans.end() ? nullptr : cached->second;
}

void cache_plan(std::shared_ptr<const select_plan> plan) {
    const std::lock_guard lock(cache().mutex);
    auto& plans = cache().plans;
    if (plans.size() >= most_plans) plans.erase(plans.begin());
    const select_desc& desc = plan->desc;
    plans.emplace(desc, std::move(plan));
}

} // namespace

std::shared_ptr<const select_plan> make_select_plan(const select_desc& desc) {
    if (auto cached = find_plan(desc)) return cached;
    auto plan = build_plan(desc, active_isa(), stream_threshold_bytes());
    if (verbose_level() >= 2) print_verbose("plan," + to_string(*plan));
    cache_plan(plan);
    return plan;
}

std::shared_ptr<const select_plan> make_copy_plan(const tensor_desc& src, const tensor_desc& dst) {
    return make_select_plan({{data_type::boolean, {}, {}}, src, src, dst});
}

} // namespace maskwise
