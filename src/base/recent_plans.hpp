#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace maskwise {

// Caches the plans that an operator or a function used last, at most `most`. More than one plan is
// cached, because shapes may vary from call to call, for example during text generation.
// Thread-safe.
template <class Key, class Plan, std::size_t most = 4, class Mutex = std::mutex>
class recent_plans {
public:
    // Returns the cached plan, or caches and returns make(). Exceptions of make() pass through.
    template <class Make>
    Plan find(const Key& key, const Make& make) {
        if (auto cached = find_cached(key)) return *std::move(cached);
        Plan plan = make();
        const std::lock_guard lock(mutex_);
        if (plans_.size() == most) plans_.pop_back();
        plans_.emplace_front(key, plan);
        return plan;
    }

private:
    std::optional<Plan> find_cached(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto cached = std::ranges::find(plans_, key, &std::pair<Key, Plan>::first);
        if (cached == plans_.end()) return std::nullopt;
        plans_.splice(plans_.begin(), plans_, cached);
        return plans_.front().second;
    }

    Mutex mutex_;
    std::list<std::pair<Key, Plan>> plans_; // most recently used first
};

} // namespace maskwise
